/** The result and the expected failure of a tool. */
import type { Json } from "../lib/json.ts";
import type { EventData } from "../protocol/event.ts";
import type { Image } from "../protocol/message.ts";

export interface ToolResult {
  /** What the model reads. */
  readonly content: string;
  /** What a person sees instead, where that differs (a diff). */
  readonly detailedContent?: string;
  readonly images?: readonly Image[];
  /** Kept beside the log for whoever reads it; no model is shown them. */
  readonly resources?: readonly Image[];
  /** For whoever counts; no model is shown it. */
  readonly telemetry?: Readonly<Record<string, Json>>;
  /** Exit code of the shell command that the call ran or read to its end. */
  readonly exitCode?: number;
  /** Tools that the model is shown from now on. */
  readonly toolReferences?: readonly string[];
  /** Said to the model in the user's role, once all results of the reply are in. */
  readonly messages?: readonly { readonly content: string; readonly source: string }[];
  /** Set by the tool that brought a skill into the conversation. */
  readonly skillInvoked?: EventData<"skill.invoked">;
  /** Set by the tool that declares the whole task done. */
  readonly taskComplete?: { readonly summary?: string };
}

export type ToolErrorCode = "failure" | "denied" | "rejected" | "timeout" | "interrupted";

/** An expected failure, worded for the model. Anything else thrown by a tool is a bug. */
export class ToolError extends Error {
  override readonly name = "ToolError";
  readonly code: ToolErrorCode;
  readonly telemetry: ToolResult["telemetry"];

  constructor(
    message: string,
    options: { code?: ToolErrorCode; cause?: unknown; telemetry?: ToolResult["telemetry"] } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? "failure";
    this.telemetry = options.telemetry;
  }
}
