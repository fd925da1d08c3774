/** Measures the context window that an agent uses: an estimate, corrected by the provider's earlier counts. */
import { definitionTokens } from "../../context/compact-tokens.ts";
import { Calibration, estimateTokens } from "../../lib/tokens.ts";
import type { Tool } from "../../tools/tool.ts";
import type { History } from "../history.ts";
import type { PromptAndTools, SessionModel } from "../session-model.ts";

/** Used if a provider does not report its window. */
const ASSUMED_CONTEXT_WINDOW = 128_000;

export interface ContextSize {
  readonly systemTokens: number;
  readonly toolDefinitionsTokens: number;
  readonly conversationTokens: number;
  readonly currentTokens: number;
  readonly tokenLimit: number;
  readonly messagesLength: number;
}

/** Measures all agents of a session. Sizes that do not change are cached. */
export class ContextMeter {
  readonly #calibration = new Calibration();
  readonly #tools = new WeakMap<Tool, number>();
  #system = { text: "", tokens: 0 };

  /** Measures a context. The caller must have read `history` before. */
  measure(context: {
    readonly model: SessionModel;
    readonly promptAndTools: Pick<PromptAndTools, "system" | "tools">;
    readonly history: Pick<History, "tokens" | "length">;
  }): ContextSize {
    const { model, promptAndTools, history } = context;
    const tokens = (estimate: number): number => this.corrected(model, estimate);
    const systemTokens = tokens(this.#systemTokens(promptAndTools.system));
    const toolDefinitionsTokens = tokens(promptAndTools.tools.reduce((sum, tool) => sum + this.toolTokens(tool), 0));
    const conversationTokens = tokens(history.tokens);
    return {
      systemTokens,
      toolDefinitionsTokens,
      conversationTokens,
      currentTokens: systemTokens + toolDefinitionsTokens + conversationTokens,
      tokenLimit: model.contextWindow ?? ASSUMED_CONTEXT_WINDOW,
      messagesLength: history.length,
    };
  }

  /** Calibrates with the provider's count for a request that was measured before. */
  learn(model: SessionModel, tokens: { readonly measured: number; readonly reported: number }): void {
    const estimate = tokens.measured / this.factor(model);
    this.#calibration.learn(model.model, { estimate, reported: tokens.reported });
  }

  corrected(model: SessionModel, estimate: number): number {
    return this.#calibration.corrected(model.model, estimate);
  }

  /** Returns the ratio of the model's token count to our estimate. */
  factor(model: SessionModel): number {
    return this.#calibration.corrected(model.model, SCALE) / SCALE;
  }

  /** Returns the estimate for a tool, before correction. */
  toolTokens(tool: Tool): number {
    const known = this.#tools.get(tool);
    if (known !== undefined) return known;
    const tokens = definitionTokens(tool);
    this.#tools.set(tool, tokens);
    return tokens;
  }

  #systemTokens(text: string): number {
    if (this.#system.text !== text) this.#system = { text, tokens: estimateTokens(text) };
    return this.#system.tokens;
  }
}

const SCALE = 1_000_000;
