/**
 * Finds possible starts of many strings in one pass. Every four characters of the text form a number, and a small table
 * says whether an anchor begins with them. Case is ignored, and rare characters share one class. A hit is a hint that
 * the caller must check.
 */
export interface AnchorSet {
  /** Reports possible starts of anchors. */
  scan(text: string, onHit: (anchor: number, start: number) => void): void;
  /** Returns how many characters at the end may be the beginning of an anchor; at most three. */
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

/** Anchors need at least three characters. */
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
    // Any character may follow it.
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

/** Returns the first four characters as a number; with three, the fourth is empty. */
function gramOf(anchor: string, classes: Uint8Array): number {
  let gram = 0;
  for (let at = 0; at < GRAM; at++) {
    const kind = at < anchor.length ? (classes[anchor.charCodeAt(at) & 0xff] ?? 0) : 0;
    gram = (gram << CLASS_BITS) | kind;
  }
  return gram;
}

/**
 * The anchors that begin with a number. Usually there is only one, so lists exist only for the others: this is built at
 * every start.
 */
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
