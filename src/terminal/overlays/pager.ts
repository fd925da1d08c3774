/** A text to read: scrolls, searches, follows text that still grows. */
import type { Style } from "../screen/style.ts";
import { keyRows } from "../screen/width.ts";
import { wrapHanging } from "../screen/wrap.ts";
import { framed, type Overlay, printable, type Size } from "./overlay.ts";

export interface PagerOptions {
  readonly title: string;
  /** Logical lines; called for every frame, so that a text may grow. */
  lines(): readonly string[];
  readonly style: Style;
  /** Begin at the end and stay there. */
  readonly isFollowing?: boolean;
  /** More keys, named in the footer. */
  readonly extra?: { readonly help: string; key(id: string): "close" | undefined };
  /** Goes back to the overlay from which it was opened. */
  readonly back?: (() => "close" | undefined) | undefined;
}

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
    const help = ["q close", "↑↓ PgUp PgDn g G", "/ search n next", extra?.help].filter((part) => part).join(" · ");
    // The place is not known before the room is.
    const footer = keyRows(`${help} · ${this.#rows.length}/${this.#rows.length}`, size.columns - 1);
    this.#room = Math.max(1, size.rows - 1 - footer.length);
    if (this.#isSearching) this.#find();
    const last = Math.max(0, this.#rows.length - this.#room);
    if (this.#isFollowing) this.#top = last;
    this.#top = Math.max(0, Math.min(this.#top, last));
    const position = `${Math.min(this.#rows.length, this.#top + this.#room)}/${this.#rows.length}`;
    const keys = keyRows(`${help} · ${position}`, size.columns - 1);
    const shown = this.#isTyping ? [`/${this.#search ?? ""}`, ...footer.slice(1).map(() => "")] : keys;
    return framed(size, {
      title: style.bold(title),
      body: this.#rows.slice(this.#top, this.#top + this.#room),
      footer: shown.map(style.dim),
    });
  }

  key(key: { readonly id: string | undefined; readonly data: string }): "close" | undefined {
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
        return this.#options.extra?.key(id);
    }
  }

  #typed(key: { readonly id: string | undefined; readonly data: string }): undefined {
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
