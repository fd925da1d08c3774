/**
 * The prompt's editor: several lines, kill ring, undo. The editing comes from pi-tui; drawing, submitting and pasting are
 * ours. A large paste, or one with characters that an editor cannot show, stands in the text as a marker and is sent as it
 * came, byte for byte.
 */
import { Editor } from "@earendil-works/pi-tui/dist/components/editor.js";
import { CURSOR_MARKER } from "@earendil-works/pi-tui/dist/tui.js";
import { safeCode } from "../screen/safe.ts";
import { widthOf } from "../screen/width.ts";

const identity = (text: string): string => text;
const MAX_INLINE_CHARACTERS = 1_000;
const MAX_INLINE_LINES = 10;
/** Characters that the editor would change or that cannot be drawn. */
const UNEDITABLE = /[^\n\u0020-\u007e\u00a0-\u{10ffff}]/u;

/** Parts of pi-tui's editor that it keeps to itself: the texts behind the markers of pastes. */
interface PasteStore {
  pastes: Map<number, string>;
  pasteCounter: number;
}

/** The place of its caret, which it has no function to set. */
interface CaretStore {
  state: { cursorLine: number; cursorCol: number };
}

const UNDO = "\u001f";

export class PromptEditor {
  readonly #editor: Editor;
  #rows = 24;

  constructor(onChange: () => void) {
    const host = {
      requestRender: () => undefined,
      terminal: { rows: 24 },
    };
    Object.defineProperty(host.terminal, "rows", { get: () => this.#rows });
    const list = { selectedPrefix: identity, selectedText: identity, description: identity };
    // Only these two members of its host are used by the editor.
    this.#editor = new Editor(host as never, {
      borderColor: identity,
      selectList: { ...list, scrollInfo: identity, noMatch: identity },
    });
    this.#editor.focused = true;
    this.#editor.disableSubmit = true;
    this.#editor.onChange = onChange;
  }

  /** The draft as it will be sent: markers of pastes are replaced by their text. */
  get text(): string {
    return this.#editor.getExpandedText();
  }

  /** The draft as it is shown. */
  get shown(): string {
    return this.#editor.getText();
  }

  get isEmpty(): boolean {
    return this.#editor.getText() === "";
  }

  /** Text from the start of the caret's line up to the caret, and whether that line is the first. */
  get beforeCaret(): { readonly text: string; readonly isFirstLine: boolean } {
    const { line, col } = this.#editor.getCursor();
    return { text: (this.#editor.getLines()[line] ?? "").slice(0, col), isFirstLine: line === 0 };
  }

  handle(data: string): void {
    this.#editor.handleInput(data);
  }

  newLine(): void {
    this.#editor.insertTextAtCursor("\n");
  }

  /** Inserts text as if it were typed, in one step for undo. */
  insert(text: string): void {
    this.#editor.insertTextAtCursor(text);
  }

  /** Terminals send line breaks of a paste as carriage returns. */
  paste(text: string): void {
    const lines = text.includes("\n") ? text : text.replaceAll("\r", "\n");
    const count = lines.length > MAX_INLINE_CHARACTERS * 10 ? Number.POSITIVE_INFINITY : lines.split("\n").length;
    if (lines.length <= MAX_INLINE_CHARACTERS && count <= MAX_INLINE_LINES && !UNEDITABLE.test(lines)) {
      this.#editor.insertTextAtCursor(lines);
      return;
    }
    this.#editor.insertTextAtCursor(this.#marker(lines));
  }

  #marker(text: string): string {
    const store = this.#editor as unknown as PasteStore;
    const id = ++store.pasteCounter;
    store.pastes.set(id, text);
    let breaks = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) breaks++;
    return breaks >= MAX_INLINE_LINES ? `[paste #${id} +${breaks + 1} lines]` : `[paste #${id} ${text.length} chars]`;
  }

  /** Replaces the draft. Text that the editor cannot hold becomes a marker. */
  set(text: string): void {
    if (text.length <= MAX_INLINE_CHARACTERS * 10 && !UNEDITABLE.test(text)) {
      this.#editor.setText(text);
      return;
    }
    this.#editor.setText("");
    this.paste(text);
  }

  /** The caret as an index into the shown text. */
  get caret(): number {
    const { line, col } = this.#editor.getCursor();
    const before = this.#editor.getLines().slice(0, line);
    return before.reduce((sum, one) => sum + one.length + 1, 0) + col;
  }

  set caret(at: number) {
    const before = this.shown.slice(0, Math.max(0, at));
    const { state } = this.#editor as unknown as CaretStore;
    state.cursorLine = before.split("\n").length - 1;
    state.cursorCol = before.length - (before.lastIndexOf("\n") + 1);
  }

  /** Replaces the shown text, in one step for undo. Markers of pastes keep their texts. */
  change(text: string, caret: number): void {
    this.#editor.setText(text);
    this.caret = caret;
  }

  undo(): void {
    this.#editor.handleInput(UNDO);
  }

  /** Replaces the last `count` characters before the caret. */
  complete(count: number, text: string): void {
    for (let index = 0; index < count; index++) this.#editor.handleInput("\u007f");
    this.#editor.insertTextAtCursor(text);
  }

  /** Empties the draft and returns what it was. */
  take(): string {
    const { text } = this;
    this.#editor.setText("");
    const store = this.#editor as unknown as PasteStore;
    store.pastes = new Map();
    store.pasteCounter = 0;
    return text;
  }

  /** The rows of the draft, at most `maxRows`, and the caret in them. */
  render(columns: number, maxRows: number): { rows: string[]; caret: { row: number; column: number } } {
    // The editor shows three tenths of the rows that it believes to have.
    this.#rows = Math.max(1, Math.ceil(maxRows / 0.3));
    const drawn = this.#editor.render(Math.max(2, columns)).slice(1, -1);
    let caret = { row: 0, column: 0 };
    const rows = drawn.map((line, row) => {
      const at = line.indexOf(CURSOR_MARKER);
      if (at < 0) return safeCode(line).trimEnd();
      const before = safeCode(line.slice(0, at));
      const after = line.slice(at + CURSOR_MARKER.length).replace(/\u001b\[(7|0)m/g, "");
      caret = { row, column: widthOf(before) };
      return `${before}${safeCode(after)}`.trimEnd();
    });
    return { rows: rows.slice(-Math.max(maxRows, 1)), caret: { ...caret, row: caret.row - overflow(rows, maxRows) } };
  }
}

const overflow = (rows: readonly string[], most: number): number => Math.max(0, rows.length - Math.max(most, 1));
