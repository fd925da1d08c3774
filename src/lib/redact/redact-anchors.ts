/**
 * Finds where one of many strings may begin, in one pass: every four characters of the text are one number, and a small
 * table tells whether an anchor begins with these. Letters count whatever their case, rare characters as one; a hit is a
 * hint that the caller checks.
 */
export interface AnchorSet {
  /** Says where an anchor may begin, and which. */
  scan(text: string, onHit: (anchor: number, start: number) => void): void;
  /** How many characters at the end may be the beginning of an anchor; at most three. */
  openEnd(text: string): number;
}

const GRAM = 4;
const CLASS_BITS = 6;
const CLASSES = 1 << CLASS_BITS;
const GRAM_MASK = 2 ** (CLASS_BITS * GRAM) - 1;
const TABLE_BITS = 17;
/** Spreads neighbouring numbers over the table. */
const SPREAD = 0x9e3779b1;
const TOLD_APART = "abcdefghijklmnopqrstuvwxyz0123456789_-./:~=$+%@!#&*()[]{} \\\"'";

/** Anchors need three characters at least. */
export function createAnchorSet(anchors: readonly string[]): AnchorSet {
  const classes = characterClasses();
  const table = new Uint8Array(2 ** TABLE_BITS);
  const byGram = new Beginnings();
  const byThree = new Beginnings();
  let beginnings: ReadonlySet<string> | undefined;
  for (let index = 0; index < anchors.length; index++) {
    const anchor = anchors[index] ?? "";
    const gram = gramOf(anchor, classes);
    if (anchor.length >= GRAM) {
      byGram.add(gram, index);
      table[placeOf(gram)] = 1;
      continue;
    }
    // Whatever may follow it.
    byThree.add(gram, index);
    for (let kind = 0; kind < CLASSES; kind++) table[placeOf(gram | kind)] = 1;
  }

  return {
    scan(text, onHit) {
      const report = (gram: number, start: number): void => {
        if (start < 0) return;
        byGram.each(gram, start, onHit);
        byThree.each(gram & ~(CLASSES - 1), start, onHit);
      };
      const length = text.length;
      let gram = 0;
      for (let at = 0; at < length; at++) {
        gram = ((gram << CLASS_BITS) | (classes[text.charCodeAt(at) & 0xff] ?? 0)) & GRAM_MASK;
        if (table[placeOf(gram)] !== 0) report(gram, at - (GRAM - 1));
      }
      // One step beyond the end, for an anchor of three characters there.
      report((gram << CLASS_BITS) & GRAM_MASK, length - (GRAM - 1));
    },
    openEnd(text) {
      beginnings ??= beginningsOf(anchors);
      const end = text.slice(-(GRAM - 1)).toLowerCase();
      for (let length = end.length; length > 0; length--) if (beginnings.has(end.slice(-length))) return length;
      return 0;
    },
  };
}

function beginningsOf(anchors: readonly string[]): Set<string> {
  return new Set(anchors.flatMap((anchor) => [1, 2, 3].map((length) => anchor.slice(0, length).toLowerCase())));
}

const placeOf = (gram: number): number => Math.imul(gram, SPREAD) >>> (32 - TABLE_BITS);

function characterClasses(): Uint8Array {
  const classes = new Uint8Array(256);
  for (let index = 0; index < TOLD_APART.length; index++) {
    classes[TOLD_APART.charCodeAt(index)] = index + 1;
    classes[TOLD_APART.charAt(index).toUpperCase().charCodeAt(0)] = index + 1;
  }
  return classes;
}

/** The first four characters as a number; with three, nothing for the fourth. */
function gramOf(anchor: string, classes: Uint8Array): number {
  let gram = 0;
  for (let at = 0; at < GRAM; at++) {
    const kind = at < anchor.length ? (classes[anchor.charCodeAt(at) & 0xff] ?? 0) : 0;
    gram = (gram << CLASS_BITS) | kind;
  }
  return gram;
}

/** Which anchors begin with a number. Nearly always one does, so lists are kept for the others only: a start makes this. */
class Beginnings {
  readonly #one = new Map<number, number>();
  readonly #more = new Map<number, number[]>();

  add(gram: number, anchor: number): void {
    const more = this.#more.get(gram);
    if (more) more.push(anchor);
    else if (this.#one.has(gram)) this.#more.set(gram, [anchor]);
    else this.#one.set(gram, anchor);
  }

  each(gram: number, start: number, onHit: (anchor: number, start: number) => void): void {
    const one = this.#one.get(gram);
    if (one === undefined) return;
    onHit(one, start);
    for (const anchor of this.#more.get(gram) ?? []) onHit(anchor, start);
  }
}
