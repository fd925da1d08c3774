/** A text to read: scrolls, searches, follows text that still grows. */
import type { Style } from "../screen/style.ts";
import { keyRows } from "../screen/width.ts";
import { wrapHanging } from "../screen/wrap.ts";
import { type Overlay, overlayRows, printable, type Size } from "./overlay.ts";

export interface PagerOptions {
  readonly title: string;
  /** Logical lines; called for every frame, so that a text may grow. */
  lines(): readonly string[];
  readonly style: Style;
  /** Begin at the end and stay there. */
  readonly isFollowing?: boolean;
  /** More keys, named in the footer. */
  readonly extra?: PagerKeys;
  /** Goes back to the overlay from which it was opened. */
  readonly back?: (() => "close" | undefined) | undefined;
  closed?(): void;
}

interface PagerKeys {
  help(): string;
  /** A row above the keys. */
  status?(): string | undefined;
  /** "end" scrolls to the end. */
  key(key: Key): "close" | "end" | undefined;
}

type Key = Parameters<Overlay["key"]>[0];

export class Pager implements Overlay {
  readonly #options: PagerOptions;
  #top = 0;
  #isFollowing: boolean;
  #search: string | undefined;
  #isTyping = false;
  /** The search has found nothing yet: it is repeated while the text grows. */
  #isSearching = false;
  #rows: readonly string[] = [];
  #room = 1;

  constructor(options: PagerOptions) {
    this.#options = options;
    this.#isFollowing = options.isFollowing ?? false;
  }

  rows(size: Size): readonly string[] {
    const { title, style, extra } = this.#options;
    this.#rows = this.#options.lines().flatMap((line) => wrapHanging(line, Math.max(1, size.columns - 1)));
    const help = ["q close", "↑↓ PgUp PgDn g G", "/ search n next", extra?.help()].filter((part) => part).join(" · ");
    const status = keyRows(extra?.status?.() ?? "", size.columns - 1).filter((row) => row !== "");
    // The place is not known before the room is.
    const footer = keyRows(`${help} · ${this.#rows.length}/${this.#rows.length}`, size.columns - 1);
    this.#room = Math.max(1, size.rows - 1 - footer.length - status.length);
    if (this.#isSearching) this.#find();
    const last = Math.max(0, this.#rows.length - this.#room);
    if (this.#isFollowing) this.#top = last;
    this.#top = Math.max(0, Math.min(this.#top, last));
    const position = `${Math.min(this.#rows.length, this.#top + this.#room)}/${this.#rows.length}`;
    const keys = keyRows(`${help} · ${position}`, size.columns - 1);
    const shown = this.#isTyping ? [`/${this.#search ?? ""}`, ...footer.slice(1).map(() => "")] : keys;
    return overlayRows(size, {
      title: style.bold(title),
      body: this.#rows.slice(this.#top, this.#top + this.#room),
      footer: [...status.map(style.yellow), ...shown.map(style.dim)],
    });
  }

  closed(): void {
    this.#options.closed?.();
  }

  key(key: Key): "close" | undefined {
    if (this.#isTyping) return this.#typed(key);
    const id = key.id ?? key.data;
    switch (id) {
      case "q":
      case "escape":
        return this.#options.back ? this.#options.back() : "close";
      case "ctrl+c":
      case "ctrl+o":
        return "close";
      case "up":
      case "k":
        return this.#move(-1);
      case "down":
      case "j":
      case "enter":
        return this.#move(1);
      case "pageUp":
      case "b":
        return this.#move(-this.#room);
      case "pageDown":
      case "space":
        return this.#move(this.#room);
      case "g":
      case "home":
        return this.#move(Number.NEGATIVE_INFINITY);
      case "G":
      case "shift+g":
      case "end":
        this.#isFollowing = true;
        return undefined;
      case "/":
        this.#isTyping = true;
        this.#search = "";
        return undefined;
      case "n":
        this.#find();
        return undefined;
      default:
        return this.#extra(key);
    }
  }

  #extra(key: Key): "close" | undefined {
    const effect = this.#options.extra?.key(key);
    if (effect === "end") this.#isFollowing = true;
    return effect === "close" ? "close" : undefined;
  }

  #typed(key: Key): undefined {
    if (key.id === "escape") this.#isTyping = false;
    else if (key.id === "enter") {
      this.#isTyping = false;
      this.#find();
    } else if (key.id === "backspace") this.#search = (this.#search ?? "").slice(0, -1);
    else this.#search = (this.#search ?? "") + (printable(key) ?? "");
    return undefined;
  }

  #move(by: number): undefined {
    this.#isFollowing = false;
    this.#isSearching = false;
    this.#top = Math.max(0, Math.min(Math.max(0, this.#rows.length - this.#room), this.#top + by));
    return undefined;
  }

  #find(): void {
    const wanted = (this.#search ?? "").toLowerCase();
    this.#isSearching = false;
    if (wanted === "") return;
    const below = this.#rows.findIndex((row, index) => index > this.#top && row.toLowerCase().includes(wanted));
    const found = below >= 0 ? below : this.#rows.findIndex((row) => row.toLowerCase().includes(wanted));
    this.#isSearching = found < 0;
    if (found < 0) return;
    this.#isFollowing = false;
    this.#top = found;
  }
}
