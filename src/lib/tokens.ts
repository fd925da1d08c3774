/**
 * Estimates the number of tokens of a text without the model's tokeniser. The reports of providers correct the
 * estimate. English and code have about four characters to a token; other scripts have one and a half.
 */
const ASCII_PER_TOKEN = 4;
const OTHERS_PER_TOKEN = 1.5;

export function estimateTokens(text: string): number {
  let others = 0;
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7f) others++;
  return Math.ceil((text.length - others) / ASCII_PER_TOKEN + others / OTHERS_PER_TOKEN);
}

/** Bounds of the factor: reports outside of them are not plausible. */
const LEAST = 0.5;
const MOST = 3;
/** The weight of the newest report. */
const WEIGHT = 0.5;
/** Below this, a few tokens of framing would distort the factor. */
const MIN_COMPARED_TOKENS = 200;

/** Correction factors of the estimates, by model. */
export class Calibration {
  readonly #factors = new Map<string, number>();

  /** Returns the estimate, corrected for this model. */
  corrected(model: string, estimate: number): number {
    return Math.ceil(estimate * (this.#factors.get(model) ?? 1));
  }

  /** Adds a provider's report for a request that was estimated. Empty reports are ignored. */
  learn(model: string, what: { readonly estimate: number; readonly reported: number }): void {
    const { estimate, reported } = what;
    if (estimate < MIN_COMPARED_TOKENS || !(reported > 0)) return;
    const seen = Math.min(MOST, Math.max(LEAST, reported / estimate));
    const before = this.#factors.get(model);
    this.#factors.set(model, before === undefined ? seen : before + (seen - before) * WEIGHT);
  }
}
