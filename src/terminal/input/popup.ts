/** The list of suggestions above the prompt. */
import { type CommandEntry, type Suggestion, suggestions } from "./completion.ts";
import type { PromptEditor } from "./editor.ts";
import type { FileList } from "./files.ts";

export class Popup {
  readonly #editor: PromptEditor;
  readonly #files: FileList;
  #entries: readonly Suggestion[] = [];
  #selected = 0;
  #closedFor: string | undefined;
  /** The draft after a file was completed, with the blank behind its name. */
  #completed: string | undefined;

  constructor(editor: PromptEditor, files: FileList) {
    this.#editor = editor;
    this.#files = files;
  }

  get isOpen(): boolean {
    return this.#entries.length > 0;
  }

  get entries(): readonly Suggestion[] {
    return this.#entries;
  }

  get selected(): number {
    return this.#selected;
  }

  /** Earlier commands win over later ones of the same name. */
  refresh({ isOn, commands }: { readonly isOn: boolean; readonly commands: readonly CommandEntry[] }): void {
    const unique = commands.filter(({ name }, index) => commands.findIndex((one) => one.name === name) === index);
    const isWanted = isOn && this.#editor.shown !== this.#closedFor;
    this.#entries = isWanted
      ? suggestions(this.#editor.beforeCaret, { commands: () => unique, files: () => this.#files.current })
      : [];
    this.#selected = Math.min(this.#selected, Math.max(0, this.#entries.length - 1));
  }

  /** Closes it until the text changes. */
  close(): void {
    this.#closedFor = this.#editor.shown;
    this.#entries = [];
  }

  /** Returns false when the key is not for the list. */
  key(id: string | undefined): boolean {
    if (!this.isOpen) return false;
    const count = this.#entries.length;
    switch (id) {
      case "up":
      case "down":
        this.#selected = (this.#selected + (id === "up" ? -1 : 1) + count) % count;
        return true;
      case "tab":
        this.#complete();
        return true;
      case "enter":
        // A command or a path that is typed whole is sent, not completed.
        if (this.#isTyped(this.#entries[this.#selected])) return false;
        this.#complete();
        return true;
      default:
        return false;
    }
  }

  #isTyped(entry: Suggestion | undefined): boolean {
    return entry !== undefined && this.#editor.beforeCaret.text.slice(-entry.replaces) === entry.text.trimEnd();
  }

  #complete(): void {
    const chosen = this.#entries[this.#selected];
    if (!chosen) return;
    this.#editor.complete(chosen.replaces, chosen.text);
    if (chosen.text.startsWith("@")) this.#completed = this.#editor.shown;
  }

  /** A colon right after a completed file begins its range of lines: it takes the place of the blank. */
  beforeTyping(data: string): void {
    const isBlankBefore = this.#editor.beforeCaret.text.endsWith(" ");
    if (data === ":" && isBlankBefore && this.#editor.shown === this.#completed) this.#editor.complete(1, "");
    this.#completed = undefined;
  }
}
