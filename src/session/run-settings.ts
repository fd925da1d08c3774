/** The settings that every run of a session shares. */

import type { Redactor } from "../lib/redact/redact.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { TraceContext } from "../lib/trace-context.ts";
import type { ReasoningEffort, ReasoningSummary } from "../model/provider.ts";
import type { Grants } from "../permissions/grants.ts";
import type { PermissionQuestion, Policy } from "../permissions/policy.ts";
import type { SessionLog } from "../store/store.ts";
import type { ToolPorts } from "../tools/tool.ts";
import type { Limits } from "./budget/budget.ts";
import type { Credits } from "./budget/credits.ts";
import type { Compactions } from "./compaction/compaction.ts";
import type { ModelSelection } from "./model-selection.ts";
import type { PlanPort } from "./requests/broker-user.ts";
import type { PromptAndTools, SessionModel } from "./session-model.ts";

/** Whoever traces what happens: contexts come in with messages and go out with calls. */
export interface Tracing {
  /** The answer to this message belongs to a trace of its sender's. */
  expect(messageId: string, context: TraceContext): void;
  /** What whoever runs the call elsewhere is told, so that what it does there belongs to the call. */
  ofCall(toolCallId: string, agentId: string | undefined): TraceContext | undefined;
}

/** What a session is given once and every run of it uses. */
export interface RunSettings {
  readonly log: SessionLog;
  readonly stamp: Stamp;
  readonly model: SessionModel;
  readonly offer: PromptAndTools;
  readonly cwd: string;
  /** Folders the tools may touch; empty = no limit. */
  readonly roots: readonly string[];
  /** What may be touched without asking, and what never. */
  readonly policy: Policy;
  /** What a person approved before, and will approve. */
  readonly grants: Grants;
  /** What its tools reach beyond their calls. */
  readonly ports: ToolPorts;
  /** Takes secrets out of everything that is said, before it is kept or told. */
  readonly redactor?: Redactor;
  /** Told when a tool may touch a file, before it does; what there is to know there reaches the agent in time. */
  readonly onFileAccess?: (path: string, toolName: string) => Promise<void>;
  /** Refuses what no rule, approval or mode can allow; why. For every agent of the session. */
  readonly refuses?: (question: PermissionQuestion) => string | undefined;
  /** Why commands run without a sandbox here; resolves to undefined when they run in one. */
  readonly withoutSandbox?: () => Promise<string | undefined>;
  /** The plan of plan mode, for whoever reviews it. */
  readonly plan?: PlanPort;
  /** The model it has and could have. */
  readonly modelSelection?: ModelSelection;
  readonly limits?: Limits;
  /** What the session may cost, as its agent is told. Held by `limits`. */
  readonly credits?: Credits;
  /** Keeps conversations within their models' windows; without it they grow until a provider refuses. */
  readonly compactions?: Compactions;
  /** Say the words as they arrive. */
  readonly streaming?: boolean;
  /** The model that searches the web for `web_search`; undefined where no model or a search service does. */
  readonly searchModel?: () => SessionModel | undefined;
  /** Say with each prompt when it was taken up. */
  readonly datesPrompts?: boolean;
  /** Ask for the places in documents that an answer rests on. */
  readonly citations?: boolean;
  /** How replies travel where nobody watches the words arrive; streamed unless told. */
  readonly replies?: "streamed" | "whole";
  readonly largeOutputBytes?: number;
  /** Keeps one elsewhere than with the session; where it is. */
  readonly keepOutput?: ((name: string, content: string) => Promise<string>) | undefined;
  readonly reasoningEffort?: ReasoningEffort | undefined;
  readonly reasoningSummary?: ReasoningSummary | undefined;
  readonly tracing?: Tracing;
}
