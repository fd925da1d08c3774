/**
 * Regular expressions in linear time. The pattern is compiled to an automaton, and all paths through it are followed at
 * once. There is no backtracking, so no pattern is slow. Features that need it (backreferences, lookaround) are
 * rejected.
 */
export const MAX_PATTERN_CHARACTERS = 256;
const MAX_STATES = 4_000;
const MAX_DEPTH = 32;

/** Returns a test that matches the whole subject. Throws for an invalid pattern. */
export function compilePattern(pattern: string): (subject: string) => boolean {
  const states: State[] = [{ type: "end-of-pattern" }];
  const start = build(states, parse(pattern), 0);
  return (subject) => run(states, start, subject);
}

type Test = (character: string) => boolean;
type Node =
  | { readonly type: "character"; readonly test: Test }
  | { readonly type: "edge"; readonly at: "start" | "end" }
  | { readonly type: "sequence" | "choice"; readonly nodes: readonly Node[] }
  | { readonly type: "repeat"; readonly node: Node; readonly least: number; readonly most: number };
type State =
  | { readonly type: "character"; readonly test: Test; readonly next: number }
  | { readonly type: "edge"; readonly at: "start" | "end"; readonly next: number }
  | { readonly type: "split"; readonly next: readonly number[] }
  | { readonly type: "end-of-pattern" };

/** Adds the states of a node that lead to `next`. Returns the first of them. */
function build(states: State[], node: Node, next: number): number {
  switch (node.type) {
    case "sequence":
      return node.nodes.reduceRight((after, inner) => build(states, inner, after), next);
    case "choice":
      return add(states, { type: "split", next: node.nodes.map((inner) => build(states, inner, next)) });
    case "repeat":
      return buildRepeat(states, node, next);
    default:
      return add(states, { ...node, next });
  }
}

function buildRepeat(states: State[], node: Extract<Node, { type: "repeat" }>, next: number): number {
  const { node: inner, least, most } = node;
  let after = next;
  if (most === Number.POSITIVE_INFINITY) {
    const loop = add(states, { type: "split", next: [] });
    states[loop] = { type: "split", next: [build(states, inner, loop), next] };
    after = loop;
  } else {
    for (let count = least; count < most; count++)
      after = add(states, { type: "split", next: [build(states, inner, after), next] });
  }
  for (let count = 0; count < least; count++) after = build(states, inner, after);
  return after;
}

function add(states: State[], state: State): number {
  if (states.length >= MAX_STATES) throw new Error("the matcher repeats too much");
  return states.push(state) - 1;
}

function run(states: readonly State[], start: number, subject: string): boolean {
  let current = reach(states, [start], { atStart: true, atEnd: subject.length === 0 });
  for (let index = 0; index < subject.length; index++) {
    const character = subject.charAt(index);
    const next: number[] = [];
    for (const id of current) {
      const state = states[id];
      if (state?.type === "character" && state.test(character)) next.push(state.next);
    }
    if (next.length === 0) return false;
    current = reach(states, next, { atStart: false, atEnd: index === subject.length - 1 });
  }
  return current.has(0);
}

/** Returns every state reachable without reading a character. */
function reach(states: readonly State[], from: readonly number[], position: { atStart: boolean; atEnd: boolean }) {
  const reached = new Set<number>();
  const open = [...from];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (reached.has(id)) continue;
    reached.add(id);
    const state = states[id];
    if (state?.type === "split") open.push(...state.next);
    else if (state?.type === "edge" && (state.at === "start" ? position.atStart : position.atEnd))
      open.push(state.next);
  }
  return reached;
}

/** The parser's position in the pattern. */
interface Reader {
  readonly text: string;
  at: number;
  depth: number;
}

function parse(text: string): Node {
  const reader: Reader = { text, at: 0, depth: 0 };
  const node = parseChoice(reader);
  if (reader.at < text.length) throw new Error("the matcher has an unmatched )");
  return node;
}

function parseChoice(reader: Reader): Node {
  if (++reader.depth > MAX_DEPTH) throw new Error("the matcher is nested too deeply");
  const nodes = [parseSequence(reader)];
  while (reader.text[reader.at] === "|") {
    reader.at++;
    nodes.push(parseSequence(reader));
  }
  reader.depth--;
  return { type: "choice", nodes };
}

function parseSequence(reader: Reader): Node {
  const nodes: Node[] = [];
  while (reader.at < reader.text.length && !"|)".includes(reader.text.charAt(reader.at)))
    nodes.push(parseRepeat(reader, parseAtom(reader)));
  return { type: "sequence", nodes };
}

function parseRepeat(reader: Reader, node: Node): Node {
  const found = /^(?:([*+?])|\{(\d{1,3})(?:(,)(\d{1,3})?)?\})\??/.exec(reader.text.slice(reader.at));
  if (found === null) return node;
  if (node.type === "edge") throw new Error("the matcher repeats an anchor");
  reader.at += found[0].length;
  const [, sign, least = "0", comma, most] = found;
  if (/^[*+?{]/.test(reader.text.slice(reader.at))) throw new Error("the matcher repeats a repetition");
  if (sign !== undefined)
    return { type: "repeat", node, least: sign === "+" ? 1 : 0, most: sign === "?" ? 1 : Number.POSITIVE_INFINITY };
  const end = comma === undefined ? Number(least) : most === undefined ? Number.POSITIVE_INFINITY : Number(most);
  if (end < Number(least)) throw new Error("the matcher has a repetition whose minimum is above its maximum");
  return { type: "repeat", node, least: Number(least), most: end };
}

function parseAtom(reader: Reader): Node {
  const character = reader.text.charAt(reader.at++);
  switch (character) {
    case "(":
      return parseGroup(reader);
    case "[":
      return { type: "character", test: parseSet(reader) };
    case "^":
      return { type: "edge", at: "start" };
    case "$":
      return { type: "edge", at: "end" };
    case ".":
      return { type: "character", test: (tested) => !/[\n\r\u2028\u2029]/.test(tested) };
    case "\\":
      return { type: "character", test: parseEscape(reader) };
    case "*":
    case "+":
    case "?":
    case "{":
      throw new Error("the matcher has a repetition of nothing");
    default:
      return { type: "character", test: (tested) => tested === character };
  }
}

function parseGroup(reader: Reader): Node {
  if (reader.text.startsWith("?:", reader.at)) reader.at += 2;
  else if (reader.text[reader.at] === "?")
    throw new Error("the matcher uses a lookahead or a named group, which is not supported");
  const node = parseChoice(reader);
  if (reader.text[reader.at++] !== ")") throw new Error("the matcher has an unmatched (");
  return node;
}

const classes: Readonly<Record<string, Test>> = {
  d: (tested) => /\d/.test(tested),
  D: (tested) => /\D/.test(tested),
  w: (tested) => /\w/.test(tested),
  W: (tested) => /\W/.test(tested),
  s: (tested) => /\s/.test(tested),
  S: (tested) => /\S/.test(tested),
};

function parseEscape(reader: Reader): Test {
  const character = reader.text.charAt(reader.at++);
  const known = Object.hasOwn(classes, character) ? classes[character] : undefined;
  if (known !== undefined) return known;
  if (character === "" || /[\w]/.test(character))
    throw new Error(`the matcher has \\${character}, which is not supported`);
  return (tested) => tested === character;
}

function parseSet(reader: Reader): Test {
  const negated = reader.text[reader.at] === "^";
  if (negated) reader.at++;
  const tests: Test[] = [];
  while (reader.text[reader.at] !== "]") {
    if (reader.at >= reader.text.length) throw new Error("the matcher has an unmatched [");
    tests.push(parseMember(reader));
  }
  reader.at++;
  return (tested) => tests.some((test) => test(tested)) !== negated;
}

function parseMember(reader: Reader): Test {
  const first = reader.text.charAt(reader.at++);
  if (first === "\\") return parseEscape(reader);
  const last = reader.text[reader.at + 1];
  if (reader.text[reader.at] !== "-" || last === undefined || last === "]") return (tested) => tested === first;
  if (last === "\\" || last < first) throw new Error(`the matcher has an invalid range ${first}-${last}`);
  reader.at += 2;
  return (tested) => tested >= first && tested <= last;
}
