/** The settings that all runs of a session share. */

import type { EffectGuard } from "../lib/effect-guard.ts";
import type { Redactor } from "../lib/redact/redact.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { TraceContext } from "../lib/trace-context.ts";
import type { ReasoningEffort, ReasoningSummary } from "../model/provider.ts";
import type { Grants } from "../permissions/grants.ts";
import type { PermissionQuestion, Policy } from "../permissions/policy.ts";
import type { SandboxStatus } from "../permissions/request.ts";
import type { SessionLog } from "../store/store.ts";
import type { ToolPorts } from "../tools/tool.ts";
import type { Limits } from "./budget/budget.ts";
import type { Credits } from "./budget/credits.ts";
import type { Compactions } from "./compaction/compaction.ts";
import type { ModelSelection } from "./model-selection.ts";
import type { PlanPort } from "./requests/broker-user.ts";
import type { PromptAndTools, SessionModel } from "./session-model.ts";

/** Tracing: contexts arrive with messages and are passed on with calls. */
export interface TracePort {
  /** Assigns the answer to this message to its sender's trace. */
  expect(messageId: string, context: TraceContext): void;
  /** Returns the context for the program that runs the call, so that its spans belong to the call. */
  ofCall(toolCallId: string, agentId: string | undefined): TraceContext | undefined;
}

/** Settings that a session receives once and every run uses. */
export interface RunSettings {
  readonly log: SessionLog;
  readonly stamp: Stamp;
  readonly model: SessionModel;
  readonly promptAndTools: PromptAndTools;
  readonly cwd: string;
  /** Folders that tools may access; empty: no limit. */
  readonly roots: readonly string[];
  /** Permission rules and modes. */
  readonly policy: Policy;
  /** The user's approvals, present and future. */
  readonly grants: Grants;
  /** Set where another process can take the session over. */
  readonly effectGuard?: EffectGuard | undefined;
  /** Services for tools beyond their calls. */
  readonly ports: ToolPorts;
  /** Removes secrets from every event before it is stored or passed on. */
  readonly redactor?: Redactor | undefined;
  /** Called before a tool accesses a file, so that instructions for it reach the agent in time. */
  readonly onFileAccess?: (path: string, toolName: string) => Promise<void>;
  /** Returns the reason to deny an access that no rule, approval or mode can allow. Applies to every agent. */
  readonly reasonToRefuse?: (question: PermissionQuestion) => string | undefined;
  readonly sandboxStatus?: () => Promise<SandboxStatus>;
  /** The plan of plan mode, for review. */
  readonly plan?: PlanPort;
  /** The current model, and how to change it. */
  readonly modelSelection?: ModelSelection;
  readonly limits?: Limits;
  /** The credit limit, as reported to the agent. `limits` enforces it. */
  readonly credits?: Credits;
  /** Keeps conversations within their models' windows. Without it they grow until a provider rejects a request. */
  readonly compactions?: Compactions;
  /** Emit deltas while a reply arrives. */
  readonly streaming?: boolean | undefined;
  /** The model that searches the web for `web_search`; undefined if a search service does, or none. */
  readonly searchModel?: () => SessionModel | undefined;
  /** Add the time of acceptance to each prompt. */
  readonly datesPrompts?: boolean | undefined;
  /** Ask the model for citations of documents. */
  readonly citations?: boolean | undefined;
  /** How replies are requested if no one watches them arrive; streamed by default. */
  readonly replies?: "streamed" | "whole" | undefined;
  readonly largeOutputBytes?: number | undefined;
  /** Stores large output outside the session and returns its path. */
  readonly storeOutput?: ((name: string, content: string) => Promise<string>) | undefined;
  readonly reasoningEffort?: ReasoningEffort | undefined;
  readonly reasoningSummary?: ReasoningSummary | undefined;
  readonly tracing?: TracePort | undefined;
}
