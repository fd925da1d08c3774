/** Text that arrives in pieces. A part is released as soon as it is certain that no secret begins in it. */
export interface TextRange {
  start: number;
  end: number;
  name: string;
  /** If two overlap, the name of the lower one is shown. Below zero its value is known. */
  rank: number;
}

export interface HeldText {
  /** Returns the text that can be released now; the rest waits for the next piece. */
  push(chunk: string): string;
  end(): string;
}

/** How far an expression looks before and after its match. */
const LOOK_BACK = 96;
const LOOK_AHEAD = 4;
/** No searched secret is longer. */
const MAX_HELD = 64 * 1024;

export function holdBack(
  find: (text: string, onOpen: (start: number) => void) => TextRange[],
  replace: (text: string, stretches: readonly TextRange[]) => string,
): HeldText {
  /** Already released, but stored because later text may depend on it. */
  let before = "";
  let held = "";

  const release = (isEnd: boolean): string => {
    const text = before + held;
    const from = before.length;
    let cut = text.length;
    const hold = (start: number): void => {
      cut = Math.min(cut, Math.max(start, from));
    };
    const stretches = find(text, hold).filter(({ start }) => start >= from);
    for (const { start, end } of stretches) if (end > text.length - LOOK_AHEAD) hold(start);
    if (isEnd || text.length - cut > MAX_HELD) cut = text.length;
    for (const { start, end } of stretches) if (start < cut && end > cut) cut = start;
    const inside = stretches
      .filter(({ end }) => end <= cut)
      .map((stretch) => ({ ...stretch, start: stretch.start - from, end: stretch.end - from }));
    const passed = replace(text.slice(from, cut), inside);
    before = text.slice(Math.max(0, cut - LOOK_BACK), cut);
    held = text.slice(cut);
    return passed;
  };

  return {
    push(chunk) {
      if (chunk === "") return "";
      held += chunk;
      return release(false);
    },
    end() {
      const rest = release(true);
      before = "";
      held = "";
      return rest;
    },
  };
}
