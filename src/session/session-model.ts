/** The model of a session, and the prompt and tools it is given. */

import type { ModelRoute } from "../model/catalog.ts";
import type { Provider, Usage } from "../model/provider.ts";
import type { EventData } from "../protocol/event.ts";
import type { Tool } from "../tools/tool.ts";

/** The model a session speaks to, with retries and limits already around it. */
export interface SessionModel {
  readonly provider: Provider;
  readonly providerId: string;
  /** What the provider calls it. */
  readonly model: string;
  /** What the session calls it, when that differs. */
  readonly id?: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** False: it takes no pictures. */
  readonly vision?: boolean;
  /** Set when the provider searches the web itself: the address that such a request goes to. */
  readonly searchAddress?: string;
  /** It only stands for a model, whose place does not say now what it has. */
  readonly absent?: { readonly why: string; readonly wanted: string | undefined };
  /** How its requests travel; absent for models that answer inside this process. */
  readonly route?: ModelRoute;
  /** Null when the price is not known. */
  costOf(usage: Usage): number | null;
}

/** What the agent is told and given, as of now: both may change from one model call to the next. */
export interface PromptAndTools {
  readonly system: string;
  readonly tools: readonly Tool[];
  /** One that is not shown and can be called all the same. */
  find?(name: string): Tool | undefined;
  /** Told once, before the first message. */
  readonly skills?: EventData<"session.skills_loaded">["skills"];
  /** Resolves when everything worth waiting for is there, or its time is up. */
  ready?(signal: AbortSignal): Promise<void>;
  /** True when `ready` keeps nobody waiting. */
  readonly isQuick?: boolean;
}

export const isStreamed = ({ streaming, replies }: { streaming?: boolean; replies?: "streamed" | "whole" }): boolean =>
  streaming === true || replies !== "whole";
