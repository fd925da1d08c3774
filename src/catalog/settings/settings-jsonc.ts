/**
 * A strict parser for JSON with comments and trailing commas. It records the position of every value, so that errors
 * can name the line. Duplicate names and prototype keys are refused.
 */
import { type Json, prototypeKeys } from "../../lib/json.ts";

export interface JsonNode {
  readonly value: Json;
  /** Counted from one. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  /** Start of the member including its name; equal to `start` for a value without a name. */
  readonly from: number;
  readonly members: ReadonlyMap<string, JsonNode>;
  readonly elements: readonly JsonNode[];
}

export class JsoncError extends Error {
  override readonly name = "JsoncError";
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

const MAX_DEPTH = 64;
const MAX_VALUES = 10_000;
const NO_MEMBERS: ReadonlyMap<string, JsonNode> = new Map();

/** Throws a `JsoncError` at the first problem. */
export function parseJsonc(text: string): JsonNode {
  const reader = new Reader(text);
  const root = reader.value(0);
  reader.expectEnd();
  return root;
}

/** Returns the line of the value at `path`, or of its innermost existing parent. */
export function lineOf(root: JsonNode, path: readonly PropertyKey[]): number {
  let node = root;
  for (const step of path) {
    const next = typeof step === "number" ? node.elements[step] : node.members.get(String(step));
    if (next === undefined) break;
    node = next;
  }
  return node.line;
}

/** Returns the position after white space and comments. */
export function skipSpace(text: string, position: number): number {
  const space = /(?:[ \t\r\n]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
  space.lastIndex = position;
  space.test(text);
  return space.lastIndex;
}

class Reader {
  readonly #text: string;
  #position = 0;
  #line = 1;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number, from?: number): JsonNode {
    this.#skip();
    if (depth > MAX_DEPTH) this.#fail(`is nested more than ${MAX_DEPTH} deep`);
    if (++this.#values > MAX_VALUES) this.#fail(`contains more than ${MAX_VALUES} values`);
    const start = this.#position;
    const line = this.#line;
    const position = { line, start, from: from ?? start };
    switch (this.#text[start]) {
      case "{":
        return { ...position, ...this.#object(depth), elements: [], end: this.#position };
      case "[":
        return { ...position, ...this.#array(depth), members: NO_MEMBERS, end: this.#position };
      default:
        return { ...position, value: this.#plain(), members: NO_MEMBERS, elements: [], end: this.#position };
    }
  }

  expectEnd(): void {
    this.#skip();
    if (this.#position < this.#text.length) this.#fail(`has ${this.#found()} after its end`);
  }

  #object(depth: number): Pick<JsonNode, "value" | "members"> {
    const members = new Map<string, JsonNode>();
    const value: { [name: string]: Json } = {};
    this.#position++;
    for (;;) {
      this.#skip();
      if (this.#take("}")) return { value, members };
      const from = this.#position;
      if (this.#text[from] !== '"') this.#fail(`expects a name in quotes or }, and has ${this.#found()}`);
      const name = this.#string();
      if (prototypeKeys.has(name)) this.#fail(`contains the name ${name}, which is not allowed`);
      if (members.has(name)) this.#fail(`contains ${JSON.stringify(name)} twice`);
      this.#skip();
      if (!this.#take(":")) this.#fail(`expects : after a name, and has ${this.#found()}`);
      const member = this.value(depth + 1, from);
      members.set(name, member);
      value[name] = member.value;
      this.#afterElement("}");
    }
  }

  #array(depth: number): Pick<JsonNode, "value" | "elements"> {
    const elements: JsonNode[] = [];
    this.#position++;
    for (;;) {
      this.#skip();
      if (this.#take("]")) return { value: elements.map(({ value }) => value), elements };
      elements.push(this.value(depth + 1));
      this.#afterElement("]");
    }
  }

  #afterElement(close: "}" | "]"): void {
    this.#skip();
    const isFine = this.#take(",") || this.#text[this.#position] === close;
    if (!isFine) this.#fail(`expects , or ${close}, but has ${this.#found()}`);
  }

  #plain(): Json {
    if (this.#text[this.#position] === '"') return this.#string();
    const literal = /-?[0-9][0-9.eE+-]*|[A-Za-z]+/y;
    literal.lastIndex = this.#position;
    const word = literal.exec(this.#text)?.[0] ?? "";
    const value = parseOrUndefined(word);
    const isValue = value !== undefined && (typeof value !== "number" || Number.isFinite(value));
    if (!isValue) return this.#fail(`expects a value, but has ${this.#found()}`);
    this.#position += word.length;
    return value;
  }

  #string(): string {
    const start = this.#position;
    let end = start + 1;
    while (end < this.#text.length && this.#text[end] !== '"' && this.#text[end] !== "\n") {
      end += this.#text[end] === "\\" ? 2 : 1;
    }
    const value = this.#text[end] === '"' ? parseOrUndefined(this.#text.slice(start, end + 1)) : undefined;
    if (typeof value !== "string") return this.#fail("contains a string that is not closed or has an invalid escape");
    this.#position = end + 1;
    return value;
  }

  #take(character: string): boolean {
    const isThere = this.#text[this.#position] === character;
    if (isThere) this.#position++;
    return isThere;
  }

  #skip(): void {
    const next = skipSpace(this.#text, this.#position);
    for (let at = this.#position; at < next; at++) if (this.#text[at] === "\n") this.#line++;
    this.#position = next;
  }

  #found(): string {
    const code = this.#text.codePointAt(this.#position);
    return code === undefined ? "an unexpected end" : JSON.stringify(String.fromCodePoint(code));
  }

  #fail(message: string): never {
    throw new JsoncError(this.#line, message);
  }
}

function parseOrUndefined(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
