/** Search in the history of prompts (Ctrl+R): the words are typed in the prompt row, what is found stands above it. */

import { safeLine } from "../screen/safe.ts";
import { widthOf } from "../screen/width.ts";
import type { PromptHistory } from "./history.ts";

const MAX_FOUND = 6;

export class HistorySearch {
  readonly label = "search history ›";
  readonly #history: PromptHistory;
  #words = "";
  #selected = 0;

  constructor(history: PromptHistory) {
    this.#history = history;
  }

  get #matches(): readonly string[] {
    return this.#history.search(this.#words).slice(0, MAX_FOUND);
  }

  get found(): readonly { readonly label: string; readonly detail: string }[] {
    return this.#matches.map((text) => ({ label: "", detail: text.slice(0, 200) }));
  }

  get selected(): number {
    return this.#selected;
  }

  render(): { rows: string[]; caret: { row: number; column: number } } {
    const text = safeLine(this.#words);
    return { rows: [text], caret: { row: 0, column: widthOf(text) } };
  }

  /** Returns an object when the search is over; with a text when one was chosen. */
  key({
    data,
    id,
  }: {
    readonly data: string;
    readonly id: string | undefined;
  }): { readonly text?: string } | undefined {
    const count = this.#matches.length;
    switch (id) {
      case "escape":
      case "ctrl+c":
      case "ctrl+g":
        return {};
      case "enter":
      case "tab": {
        const text = this.#matches[this.#selected];
        return text === undefined ? {} : { text };
      }
      case "up":
      case "ctrl+r":
      case "ctrl+p":
        this.#selected = count === 0 ? 0 : (this.#selected + 1) % count;
        return undefined;
      case "down":
      case "ctrl+n":
        this.#selected = count === 0 ? 0 : (this.#selected + count - 1) % count;
        return undefined;
      case "backspace":
        this.#words = this.#words.slice(0, -1);
        break;
      default:
        if (data >= " " && !data.startsWith("\u001b")) this.#words += data;
    }
    this.#selected = 0;
    return undefined;
  }
}
