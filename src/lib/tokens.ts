/**
 * How many tokens a text is, without the model's own tokeniser: an estimate that is put right by what providers
 * report. English and code have about four characters to a token; other scripts have one and a half.
 */
const ASCII_PER_TOKEN = 4;
const OTHERS_PER_TOKEN = 1.5;

export function estimateTokens(text: string): number {
  let others = 0;
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7f) others++;
  return Math.ceil((text.length - others) / ASCII_PER_TOKEN + others / OTHERS_PER_TOKEN);
}

/** Beyond these a report says more about the report than about the estimate. */
const LEAST = 0.5;
const MOST = 3;
/** How much the newest report weighs. */
const WEIGHT = 0.5;
/** Below this a few tokens of framing would be taken for a habit of the model. */
const MIN_COMPARED_TOKENS = 200;

/** What models made of our estimates, model by model. */
export class Calibration {
  readonly #factors = new Map<string, number>();

  /** The estimate, as this model would count. */
  corrected(model: string, estimate: number): number {
    return Math.ceil(estimate * (this.#factors.get(model) ?? 1));
  }

  /** A provider has said how many tokens a request had that we had estimated. Reports of nothing teach nothing. */
  learn(model: string, what: { readonly estimate: number; readonly reported: number }): void {
    const { estimate, reported } = what;
    if (estimate < MIN_COMPARED_TOKENS || !(reported > 0)) return;
    const seen = Math.min(MOST, Math.max(LEAST, reported / estimate));
    const before = this.#factors.get(model);
    this.#factors.set(model, before === undefined ? seen : before + (seen - before) * WEIGHT);
  }
}
