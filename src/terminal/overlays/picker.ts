/** A list to choose from: type to filter, Enter chooses. */
import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";
import { safeLine } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";
import { type Overlay, overlayRows, printable, type Size, scrollTo } from "./overlay.ts";

export interface Choice<T> {
  readonly value: T;
  readonly label: string;
  readonly detail: string;
}

export interface PickerOptions<T> {
  readonly title: string;
  readonly choices: readonly Choice<T>[];
  readonly style: Style;
  onChoose(value: T): void;
  readonly empty?: string;
  /** Lines below the list that cannot be chosen. */
  readonly notes?: readonly string[];
}

export class Picker<T> implements Overlay {
  readonly #options: PickerOptions<T>;
  #filter = "";
  #selected = 0;
  #top = 0;

  constructor(options: PickerOptions<T>) {
    this.#options = options;
  }

  get #shown(): readonly Choice<T>[] {
    const { choices } = this.#options;
    if (this.#filter === "") return choices;
    return fuzzyFilter([...choices], this.#filter, ({ label, detail }) => `${label} ${detail}`);
  }

  rows(size: Size): readonly string[] {
    const { title, style, empty, notes = [] } = this.#options;
    const shown = this.#shown;
    const room = Math.max(1, size.rows - 3);
    this.#selected = Math.max(0, Math.min(this.#selected, shown.length - 1));
    this.#top = scrollTo(this.#selected, Math.min(this.#top, Math.max(0, shown.length - room)), room);
    const width = Math.min(48, Math.max(0, ...shown.map(({ label }) => label.length)));
    const list = shown.slice(this.#top, this.#top + room).map(({ label, detail }, index) => {
      const isSelected = this.#top + index === this.#selected;
      const row = `${isSelected ? "▸" : " "} ${safeLine(label).padEnd(width)}  ${style.dim(safeLine(detail))}`;
      return isSelected ? style.bold(row) : row;
    });
    const below = notes.length > 0 ? ["", ...notes.map((note) => style.dim(safeLine(note)))] : [];
    const shownList = list.length > 0 ? list : [style.dim(empty ?? "nothing found")];
    return overlayRows(size, {
      title: style.bold(title),
      body: [`filter: ${safeLine(this.#filter)}`, ...shownList, ...below],
      footer: [style.dim("type to filter · ↑↓ · Enter chooses · Esc closes")],
    });
  }

  key(key: { readonly id: string | undefined; readonly data: string }): "close" | undefined {
    switch (key.id) {
      case "escape":
      case "ctrl+c":
        return "close";
      case "up":
      case "ctrl+p":
        this.#selected--;
        return undefined;
      case "down":
      case "ctrl+n":
        this.#selected++;
        return undefined;
      case "backspace":
        this.#filter = this.#filter.slice(0, -1);
        return undefined;
      case "enter": {
        const chosen = this.#shown[this.#selected];
        if (chosen) this.#options.onChoose(chosen.value);
        return chosen ? "close" : undefined;
      }
      default:
        this.#filter += printable(key) ?? "";
        this.#selected = 0;
        return undefined;
    }
  }
}
