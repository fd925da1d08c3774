/**
 * Vim mode of the prompt: normal, insert and visual mode with counts, operators, motions, text objects and repetition.
 * Keys that it does not know, and all keys with Ctrl or Alt, go on to the keys of the prompt.
 */
import {
  type Find,
  findOf,
  lineEnd,
  lineStart,
  type Motion,
  motionOf,
  objectOf,
  type TextSpan,
} from "./vim-motions.ts";

export interface VimPort {
  text(): string;
  caret(): number;
  /** Replaces the text in one step for undo. */
  change(text: string, caret: number): void;
  move(caret: number): void;
  undo(): void;
  /** A key of insert mode, for repetition. */
  type(data: string): void;
}

interface Key {
  readonly data: string;
  readonly id: string | undefined;
}

interface Register {
  readonly text: string;
  readonly isLinewise: boolean;
}

type Operator = "d" | "c" | "y";
const isOperator = (key: string | undefined): key is Operator => key === "d" || key === "c" || key === "y";
const MAX_COUNT = 9_999;

export class Vim {
  readonly #port: VimPort;
  mode: "insert" | "normal" | "visual" = "insert";
  /** Keys of the command that is not complete yet. */
  #pending: string[] = [];
  #register: Register = { text: "", isLinewise: false };
  #find: Find | undefined;
  #anchor = 0;
  /** Keys of the change under way, and of the last one, for `.`. */
  #recording: Key[] | undefined;
  #last: readonly Key[] = [];
  #isRepeating = false;

  constructor(port: VimPort) {
    this.#port = port;
  }

  /** Shown on the status line. */
  get label(): string {
    const pending = this.#pending.join("");
    return pending === "" ? this.mode.toUpperCase() : `${this.mode.toUpperCase()} ${pending}`;
  }

  /** A new prompt begins in insert mode. */
  reset(): void {
    this.mode = "insert";
    this.#pending = [];
    this.#recording = undefined;
  }

  /** Returns false when the key is not for vim mode. */
  key(key: Key): boolean {
    if (this.mode === "insert") return this.#insertKey(key);
    if (key.id === "escape") return this.#escape();
    const name = key.id === "space" ? " " : key.data;
    if ([...name].length !== 1 || name < " " || name === "\u007f") return false;
    if (this.#pending.length === 0 && !this.#isRepeating) this.#recording = [];
    this.#recording?.push(key);
    this.#pending.push(name);
    const outcome = this.#command(this.#pending);
    if (outcome === "more") return true;
    this.#pending = [];
    if (outcome === "change" && (this.mode as string) !== "insert") this.#recorded();
    if (outcome !== "change") this.#recording = undefined;
    return outcome !== "unknown";
  }

  #insertKey(key: Key): boolean {
    if (key.id !== "escape") {
      this.#recording?.push(key);
      return false;
    }
    this.#recording?.push(key);
    this.#recorded();
    this.mode = "normal";
    const { caret, text } = this.#place;
    if (caret > lineStart(text, caret)) this.#port.move(caret - 1);
    return true;
  }

  #recorded(): void {
    if (this.#recording && !this.#isRepeating) this.#last = this.#recording;
    this.#recording = undefined;
  }

  #escape(): boolean {
    const isUsed = this.#pending.length > 0 || this.mode === "visual";
    this.#pending = [];
    this.mode = "normal";
    return isUsed;
  }

  get #place(): { readonly text: string; readonly caret: number } {
    return { text: this.#port.text(), caret: this.#port.caret() };
  }

  /** "more": the command needs another key. "change": it can be repeated. */
  #command(keys: readonly string[]): "more" | "done" | "change" | "unknown" {
    const { count, rest } = splitCount(keys);
    const [key, ...more] = rest;
    if (key === undefined) return "more";
    if (this.mode === "visual") return this.#visual(key, more, count);
    if (isOperator(key)) return this.#operator(key, more, count);
    if (key === ".") return this.#repeat();
    if (key === "r") return more[0] === undefined ? "more" : this.#replace(more[0], count ?? 1);
    const simple = this.#simple(key, count);
    if (simple) return simple;
    return this.#go(key, more, count);
  }

  #go(key: string, more: readonly string[], count: number | undefined): "more" | "done" | "unknown" {
    const motion = this.#motion(key, more, count);
    if (motion === "more") return "more";
    if (!motion) return isMotionKey(key) ? "done" : "unknown";
    const { text } = this.#place;
    const last = Math.max(lineStart(text, motion.to), lineEnd(text, motion.to) - (this.mode === "normal" ? 1 : 0));
    this.#port.move(Math.min(motion.to, last));
    return "done";
  }

  #motion(key: string, more: readonly string[], count: number | undefined): Motion | "more" | undefined {
    const { text, caret } = this.#place;
    if (key === "g") return more[0] === undefined ? "more" : motionOf(`g${more[0]}`, text, caret, count);
    if (key === "f" || key === "F" || key === "t" || key === "T") {
      if (more[0] === undefined) return "more";
      this.#find = { key, character: more[0] };
      return findOf(this.#find, text, caret, count ?? 1);
    }
    if ((key === ";" || key === ",") && this.#find) {
      const turned = { f: "F", F: "f", t: "T", T: "t" } as const;
      const find = key === ";" ? this.#find : { ...this.#find, key: turned[this.#find.key] };
      return findOf(find, text, caret, count ?? 1);
    }
    return motionOf(key === " " ? "l" : key, text, caret, count);
  }

  #operator(operator: Operator, more: readonly string[], count: number | undefined) {
    const { count: second, rest } = splitCount(more);
    const [key, ...after] = rest;
    if (key === undefined) return "more";
    const times = count === undefined && second === undefined ? undefined : (count ?? 1) * (second ?? 1);
    const span = key === operator ? this.#lines(times ?? 1) : this.#spanOf(operator, key, after, times);
    if (span === "more") return "more";
    if (!span) return "done";
    this.#operate(operator, span);
    return operator === "y" ? "done" : "change";
  }

  #spanOf(
    operator: Operator,
    key: string,
    after: readonly string[],
    count: number | undefined,
  ): TextSpan | "more" | undefined {
    const { text, caret } = this.#place;
    if (key === "i" || key === "a") return after[0] === undefined ? "more" : objectOf(key, after[0], text, caret);
    // `cw` changes to the end of the word, as vim does.
    const isWord = operator === "c" && (key === "w" || key === "W") && /\S/.test(text[caret] ?? "");
    const motion = this.#motion(isWord ? (key === "w" ? "e" : "E") : key, after, count);
    if (motion === "more" || !motion) return motion;
    const [from, to] = [Math.min(caret, motion.to), Math.max(caret, motion.to)];
    if (motion.isLinewise) return { from: lineStart(text, from), to: lineEnd(text, to), isLinewise: true };
    const isPastLine = key === "w" && text.slice(from, to).includes("\n");
    return { from, to: isPastLine ? Math.max(from, lineEnd(text, from)) : to + (motion.isInclusive ? 1 : 0) };
  }

  #lines(count: number): TextSpan {
    const { text, caret } = this.#place;
    let to = lineEnd(text, caret);
    for (let left = count - 1; left > 0 && to < text.length; left--) to = lineEnd(text, to + 1);
    return { from: lineStart(text, caret), to, isLinewise: true };
  }

  #operate(operator: Operator, { from, to, isLinewise = false }: TextSpan): void {
    const { text } = this.#place;
    this.#register = { text: text.slice(from, to), isLinewise };
    if (operator === "y") {
      this.#port.move(from);
      return;
    }
    if (operator === "c") {
      this.#port.change(text.slice(0, from) + text.slice(to), from);
      this.mode = "insert";
      return;
    }
    // A deleted line takes one line break with it.
    const [start, end] = !isLinewise ? [from, to] : to < text.length ? [from, to + 1] : [Math.max(0, from - 1), to];
    const rest = text.slice(0, start) + text.slice(end);
    const at = Math.min(start, rest.length);
    const last = Math.max(lineStart(rest, at), lineEnd(rest, at) - 1);
    this.#port.change(rest, isLinewise ? lineStart(rest, at) : Math.min(at, last));
  }

  #visual(key: string, more: readonly string[], count: number | undefined) {
    const { text, caret } = this.#place;
    const [from, to] = [Math.min(this.#anchor, caret), Math.min(text.length, Math.max(this.#anchor, caret) + 1)];
    const operator = key === "x" ? "d" : key === "s" ? "c" : key;
    if (isOperator(operator)) {
      this.mode = "normal";
      this.#operate(operator, { from, to });
      return operator === "y" ? "done" : "change";
    }
    if (key === "v") {
      this.mode = "normal";
      return "done";
    }
    if (key === "o") {
      [this.#anchor] = [caret];
      this.#port.move(from === caret ? to - 1 : from);
      return "done";
    }
    if (key === "i" || key === "a") {
      if (more[0] === undefined) return "more";
      const span = objectOf(key, more[0], text, caret);
      if (span && span.to > span.from) {
        this.#anchor = span.from;
        this.#port.move(span.to - 1);
      }
      return "done";
    }
    return this.#go(key, more, count);
  }

  /** Commands of one key. */
  #simple(key: string, count: number | undefined): "done" | "change" | undefined {
    const { text, caret } = this.#place;
    const [start, end] = [lineStart(text, caret), lineEnd(text, caret)];
    const times = count ?? 1;
    switch (key) {
      case "i":
        return this.#insertAt(caret);
      case "a":
        return this.#insertAt(Math.min(end, caret + 1));
      case "I":
        return this.#insertAt(motionOf("^", text, caret, 1)?.to ?? start);
      case "A":
        return this.#insertAt(end);
      case "o":
        this.#port.change(`${text.slice(0, end)}\n${text.slice(end)}`, end + 1);
        return this.#insertAt(end + 1);
      case "O":
        this.#port.change(`${text.slice(0, start)}\n${text.slice(start)}`, start);
        return this.#insertAt(start);
      case "x":
        if (caret < end) this.#operate("d", { from: caret, to: Math.min(end, caret + times) });
        return "change";
      case "X":
        this.#operate("d", { from: Math.max(start, caret - times), to: caret });
        return "change";
      case "s":
        this.#operate("c", { from: caret, to: Math.min(end, caret + times) });
        return "change";
      case "S":
        this.#operate("c", this.#lines(times));
        return "change";
      case "D":
        this.#operate("d", { from: caret, to: end });
        return "change";
      case "C":
        this.#operate("c", { from: caret, to: end });
        return "change";
      case "Y":
        this.#operate("y", this.#lines(times));
        return "done";
      case "p":
      case "P":
        this.#put(key, times);
        return "change";
      case "u":
        for (let left = times; left > 0; left--) this.#port.undo();
        return "done";
      case "v":
        this.mode = "visual";
        this.#anchor = caret;
        return "done";
      default:
        return undefined;
    }
  }

  #insertAt(caret: number): "change" {
    this.#port.move(caret);
    this.mode = "insert";
    return "change";
  }

  #put(key: "p" | "P", times: number): void {
    const { text, caret } = this.#place;
    const { text: kept, isLinewise } = this.#register;
    const put = kept.repeat(isLinewise ? 1 : times);
    if (put === "") return;
    if (isLinewise) {
      const lines = Array.from({ length: times }, () => kept).join("\n");
      const at = key === "P" ? lineStart(text, caret) : lineEnd(text, caret);
      const added = key === "P" ? `${lines}\n` : `\n${lines}`;
      this.#port.change(text.slice(0, at) + added + text.slice(at), key === "P" ? at : at + 1);
      return;
    }
    const at = key === "P" ? caret : Math.min(lineEnd(text, caret), caret + 1);
    this.#port.change(text.slice(0, at) + put + text.slice(at), at + put.length - 1);
  }

  #replace(character: string, times: number): "change" {
    const { text, caret } = this.#place;
    if (caret + times <= lineEnd(text, caret)) {
      this.#port.change(text.slice(0, caret) + character.repeat(times) + text.slice(caret + times), caret + times - 1);
    }
    return "change";
  }

  /** Plays the keys of the last change again. */
  #repeat(): "done" {
    this.#isRepeating = true;
    this.#pending = [];
    for (const key of this.#last) if (!this.key(key)) this.#port.type(key.data);
    this.#isRepeating = false;
    return "done";
  }
}

const isMotionKey = (key: string): boolean => "hl0^$wWbBeEjkGgfFtT;, ".includes(key);

function splitCount(keys: readonly string[]): { readonly count: number | undefined; readonly rest: readonly string[] } {
  const digits = /^[1-9]\d*/.exec(keys.join(""))?.[0] ?? "";
  if (digits === "") return { count: undefined, rest: keys };
  return { count: Math.min(MAX_COUNT, Number(digits)), rest: keys.slice(digits.length) };
}
