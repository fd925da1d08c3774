/**
 * Regular expressions in linear time. Patterns come from a model that may be manipulated, and a backtracking matcher
 * can be made to run forever. All states are followed at once, without backtracking.
 */

/** Returns undefined when the budget is spent before the end of the text. */
export type Matches = (text: string) => boolean | undefined;

const MAX_PATTERN_CHARACTERS = 200;
const MAX_INSTRUCTIONS = 1000;
const MAX_REPEAT = 50;
const MAX_DEPTH = 20;

type Test = (code: number) => boolean;

type Node =
  | { readonly kind: "character"; readonly test: Test }
  | { readonly kind: "start" | "end" | "boundary" }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly Node[] }
  | { readonly kind: "repeat"; readonly part: Node; readonly least: number; readonly most: number };

type Instruction =
  | { readonly op: "character"; readonly test: Test }
  | { readonly op: "start" | "end" | "boundary" | "match" }
  | { readonly op: "split"; readonly targets: number[] };

/** Returns undefined for unsupported patterns: backreferences, lookaround, or anything too large. */
export function compilePattern(pattern: string, budget: { steps: number }): Matches | undefined {
  if (pattern.length > MAX_PATTERN_CHARACTERS) return undefined;
  try {
    const program: Instruction[] = [];
    emit(new Reader(pattern.replace(/^\(\?i\)/, "").toLowerCase()).whole(), program);
    program.push({ op: "match" });
    return (text) => run(program, text.toLowerCase(), budget);
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

/** Returns the words of a pattern, for a search when it cannot be used as a pattern. */
export function wordsOf(pattern: string): string[] {
  const plain = pattern.replace(/\\[a-z]|\(\?(?:[a-z]+\)|<?[=!]|:|<\w*>)|\{[\d,]*\}/gi, " ").toLowerCase();
  return [...new Set(plain.match(/[\p{L}\p{N}]{2,}/gu) ?? [])].slice(0, 20);
}

class Unreadable extends Error {}

/** Parses one pattern from left to right. */
class Reader {
  private at = 0;
  private depth = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  whole(): Node {
    const node = this.choice();
    if (this.at < this.text.length) throw new Unreadable();
    return node;
  }

  private choice(): Node {
    if (++this.depth > MAX_DEPTH) throw new Unreadable();
    const parts = [this.sequence()];
    while (this.take("|")) parts.push(this.sequence());
    this.depth--;
    return { kind: "choice", parts };
  }

  private sequence(): Node {
    const parts: Node[] = [];
    while (this.at < this.text.length && !"|)".includes(this.peek())) parts.push(this.repeated(this.single()));
    return { kind: "sequence", parts };
  }

  private repeated(part: Node): Node {
    const [least, most] = this.counts();
    if (least === 1 && most === 1) return part;
    this.take("?"); // greedy or lazy makes no difference to whether it matches
    if ("*+{".includes(this.peek() || " ")) throw new Unreadable();
    return { kind: "repeat", part, least, most };
  }

  private counts(): [number, number] {
    if (this.take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.take("?")) return [0, 1];
    const counted = /^\{(\d{1,3})(,(\d{0,3}))?\}/.exec(this.text.slice(this.at));
    if (!counted) return [1, 1];
    this.at += counted[0].length;
    const least = Number(counted[1]);
    const most = counted[2] === undefined ? least : counted[3] ? Number(counted[3]) : Number.POSITIVE_INFINITY;
    if (least > MAX_REPEAT || (most !== Number.POSITIVE_INFINITY && (most > MAX_REPEAT || most < least)))
      throw new Unreadable();
    return [least, most];
  }

  private single(): Node {
    const letter = this.next();
    switch (letter) {
      case "(": {
        if (this.take("?") && !this.take(":")) throw new Unreadable();
        const inner = this.choice();
        if (!this.take(")")) throw new Unreadable();
        return inner;
      }
      case "[":
        return { kind: "character", test: this.set() };
      case ".":
        return { kind: "character", test: () => true };
      case "^":
        return { kind: "start" };
      case "$":
        return { kind: "end" };
      case "\\":
        return this.escape();
      case "*":
      case "+":
      case "?":
        throw new Unreadable();
      default:
        return { kind: "character", test: is(letter) };
    }
  }

  private escape(): Node {
    const letter = this.next();
    if (letter === "b") return { kind: "boundary" };
    return { kind: "character", test: testOfEscape(letter) };
  }

  private set(): Test {
    const isNegated = this.take("^");
    const tests: Test[] = [];
    while (tests.length === 0 || this.peek() !== "]") {
      const first = this.next();
      if (first === "\\") tests.push(testOfEscape(this.next()));
      else if (this.peek() === "-" && this.text[this.at + 1] !== "]" && this.text[this.at + 1] !== undefined) {
        this.next();
        const last = codeOf(this.next());
        tests.push((code) => code >= codeOf(first) && code <= last);
      } else tests.push(is(first));
    }
    this.next();
    return (code) => tests.some((test) => test(code)) !== isNegated;
  }

  private peek(): string {
    return this.text[this.at] ?? "";
  }

  private next(): string {
    const letter = this.text[this.at++];
    if (letter === undefined) throw new Unreadable();
    return letter;
  }

  private take(letter: string): boolean {
    if (this.peek() !== letter) return false;
    this.at++;
    return true;
  }
}

const codeOf = (letter: string): number => letter.charCodeAt(0);
const is = (letter: string): Test => {
  const wanted = codeOf(letter);
  return (code) => code === wanted;
};
const isDigit: Test = (code) => code >= 48 && code <= 57;
const isWord: Test = (code) =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || isDigit(code) || code === 95;

/** The pattern is in lower case, so `\W` and similar classes cannot be distinguished; they are rarely used. */
function testOfEscape(letter: string): Test {
  if (letter === "w") return isWord;
  if (letter === "d") return isDigit;
  if (letter === "s") return (code) => /\s/.test(String.fromCharCode(code));
  if (letter === "n") return is("\n");
  if (letter === "t") return is("\t");
  if (/[a-z0-9]/.test(letter)) throw new Unreadable();
  return is(letter);
}

function emit(node: Node, program: Instruction[]): void {
  if (program.length > MAX_INSTRUCTIONS) throw new Unreadable();
  switch (node.kind) {
    case "character":
      program.push({ op: "character", test: node.test });
      return;
    case "sequence":
      for (const part of node.parts) emit(part, program);
      return;
    case "choice":
      emitChoice(node.parts, program);
      return;
    case "repeat":
      emitRepeat(node, program);
      return;
    default:
      program.push({ op: node.kind });
  }
}

function emitChoice(parts: readonly Node[], program: Instruction[]): void {
  const fork: number[] = [];
  const ends: number[][] = [];
  if (parts.length > 1) program.push({ op: "split", targets: fork });
  for (const part of parts) {
    fork.push(program.length);
    emit(part, program);
    const end: number[] = [];
    if (parts.length > 1) program.push({ op: "split", targets: end });
    ends.push(end);
  }
  for (const end of ends) end.push(program.length);
}

function emitRepeat({ part, least, most }: Extract<Node, { kind: "repeat" }>, program: Instruction[]): void {
  for (let count = 0; count < least; count++) emit(part, program);
  const isEndless = most === Number.POSITIVE_INFINITY;
  for (let count = least; isEndless ? count === least : count < most; count++) {
    const targets = [program.length + 1];
    const start = program.length;
    program.push({ op: "split", targets });
    emit(part, program);
    if (isEndless) program.push({ op: "split", targets: [start] });
    targets.push(program.length);
  }
}

/** Visits every state at every position at most once. Steps are counted in one budget for all texts. */
function run(program: readonly Instruction[], text: string, budget: { steps: number }): boolean | undefined {
  const lastSeen = new Int32Array(program.length).fill(-1);
  let states: number[] = [];
  for (let at = 0; at <= text.length; at++) {
    const next: number[] = [];
    states.push(0); // the match may begin anywhere
    if (advance(program, states, { text, at, lastSeen, next, budget })) return true;
    if (budget.steps < 0) return undefined;
    states = next;
  }
  return false;
}

interface MatchState {
  readonly text: string;
  readonly at: number;
  /** For each state, the last position at which it was reached. */
  readonly lastSeen: Int32Array;
  /** States after the character at this position. */
  readonly next: number[];
  readonly budget: { steps: number };
}

/** Returns true when the pattern is complete here. Consumes the given states. */
function advance(program: readonly Instruction[], open: number[], match: MatchState): boolean {
  const { text, at, lastSeen, next, budget } = match;
  const code = at < text.length ? text.charCodeAt(at) : undefined;
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    if (lastSeen[state] === at) continue;
    lastSeen[state] = at;
    budget.steps--;
    const instruction = program[state];
    if (instruction === undefined || instruction.op === "match") return true;
    if (instruction.op === "split") open.push(...instruction.targets);
    else if (instruction.op === "character") {
      if (code !== undefined && instruction.test(code)) next.push(state + 1);
    } else if (holds(instruction.op, text, at)) open.push(state + 1);
  }
  return false;
}

function holds(op: "start" | "end" | "boundary", text: string, at: number): boolean {
  if (op === "start") return at === 0;
  if (op === "end") return at === text.length;
  const before = at > 0 && isWord(text.charCodeAt(at - 1));
  const after = at < text.length && isWord(text.charCodeAt(at));
  return before !== after;
}
