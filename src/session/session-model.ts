/** The model of a session, and the prompt and tools it receives. */

import type { ModelRoute } from "../model/catalog.ts";
import type { Provider, Usage } from "../model/provider.ts";
import type { EventData } from "../protocol/event.ts";
import type { Tool } from "../tools/tool.ts";

/** The session's model, including retries and limits. */
export interface SessionModel {
  readonly provider: Provider;
  readonly providerId: string;
  /** The provider's name for it. */
  readonly model: string;
  /** The session's name for it, if that differs. */
  readonly id?: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** False: it accepts no images. */
  readonly vision?: boolean;
  /** Set if the provider itself searches the web: the URL of such requests. */
  readonly searchAddress?: string;
  /** Set for a placeholder: the provider cannot currently list its models. */
  readonly absent?: { readonly why: string; readonly wanted: string | undefined };
  /** The route of its requests; absent for models inside this process. */
  readonly route?: ModelRoute;
  /** Returns null if the price is unknown. */
  costOf(usage: Usage): number | null;
}

/** The current system prompt and tools. Both may change between model calls. */
export interface PromptAndTools {
  readonly system: string;
  readonly tools: readonly Tool[];
  /** Finds a tool that is callable but not listed. */
  find?(name: string): Tool | undefined;
  /** Emitted once, before the first message. */
  readonly skills?: EventData<"session.skills_loaded">["skills"];
  /** Resolves when everything worth waiting for is loaded, or its time is up. */
  ready?(signal: AbortSignal): Promise<void>;
  /** True if `ready` returns without waiting. */
  readonly isQuick?: boolean;
}

export const isStreamed = ({
  streaming,
  replies,
}: {
  streaming?: boolean | undefined;
  replies?: "streamed" | "whole" | undefined;
}): boolean => streaming === true || replies !== "whole";
