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
  const byGram = new Map<number, number[]>();
  let beginnings: ReadonlySet<string> | undefined;
  for (const [index, anchor] of anchors.entries()) {
    for (const gram of gramsOf(anchor, classes)) {
      const known = byGram.get(gram);
      if (known) known.push(index);
      else byGram.set(gram, [index]);
      table[placeOf(gram)] = 1;
    }
  }

  return {
    scan(text, onHit) {
      const report = (gram: number, start: number): void => {
        for (const anchor of byGram.get(gram) ?? []) if (start >= 0) onHit(anchor, start);
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

/** The first four characters as a number; with three, whatever may follow them. */
function gramsOf(anchor: string, classes: Uint8Array): number[] {
  const kindAt = (at: number): number => classes[anchor.charCodeAt(at) & 0xff] ?? 0;
  const first = ((((kindAt(0) << CLASS_BITS) | kindAt(1)) << CLASS_BITS) | kindAt(2)) << CLASS_BITS;
  if (anchor.length >= GRAM) return [first | kindAt(GRAM - 1)];
  return Array.from({ length: CLASSES }, (_, kind) => first | kind);
}
