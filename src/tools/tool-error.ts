/** The result of a tool, and its expected failure. */
import type { Json } from "../lib/json.ts";
import type { EventData } from "../protocol/event.ts";
import type { Image } from "../protocol/message.ts";

export interface ToolResult {
  /** The text for the model. */
  readonly content: string;
  /** The text for the user, when it differs (a diff). */
  readonly detailedContent?: string;
  readonly images?: readonly Image[];
  /** Stored beside the log for its readers; not shown to the model. */
  readonly resources?: readonly Image[];
  /** For metrics; not shown to the model. */
  readonly telemetry?: Readonly<Record<string, Json>>;
  /** Exit code of the shell command that the call ran or read to its end. */
  readonly exitCode?: number;
  /** Tools that are offered to the model from now on. */
  readonly toolReferences?: readonly string[];
  /** Messages in the user's role, added after all results of the reply. */
  readonly messages?: readonly { readonly content: string; readonly source: string }[];
  /** Set by a tool that added a skill to the conversation. */
  readonly skillInvoked?: EventData<"skill.invoked">;
  /** Set by the tool that declares the whole task done. */
  readonly taskComplete?: { readonly summary?: string };
}

export type ToolErrorCode = "failure" | "denied" | "rejected" | "timeout" | "interrupted";

/** An expected failure with a message for the model. Anything else thrown by a tool is a bug. */
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
