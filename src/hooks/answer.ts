/** Parses the output of a hook: text printed by a program, an HTTP body, or a returned value. */
import * as z from "zod";
import { isObject } from "../lib/json.ts";
import { clip, sanitise } from "../lib/text.ts";
import { forbiddenKey, readJson } from "./bounded-json.ts";
import { type HookOutput, type HookPoint, outputSchemas } from "./points.ts";

/** Empty output is a valid answer. Output that cannot be parsed counts as a failure of the hook. */
export type HookAnswer<P extends HookPoint> =
  | { readonly ok: true; readonly output: HookOutput<P> | undefined }
  | { readonly ok: false; readonly error: string };

export function readAnswer<P extends HookPoint>(point: P, text: string): HookAnswer<P> {
  if (text.trim() === "") return { ok: true, output: undefined };
  const json = readJson(text);
  if (!json.ok) return { ok: false, error: `its output cannot be used: ${json.error}: ${excerpt(text)}` };
  return checkAnswer(point, json.value);
}

/** Validates a value that was never text, such as the return value of a function hook. */
export function checkAnswer<P extends HookPoint>(point: P, value: unknown): HookAnswer<P> {
  if (value === undefined || value === null) return { ok: true, output: undefined };
  if (!isObject(value)) return { ok: false, error: "its output cannot be used: it is not a JSON object" };
  const forbidden = forbiddenKey(value);
  if (forbidden !== undefined) return { ok: false, error: `its output cannot be used: it has the name ${forbidden}` };
  const parsed = outputSchemas[point].safeParse(inOurWords(point, value));
  if (parsed.success) return { ok: true, output: parsed.data as HookOutput<P> };
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".") || "the output";
  return { ok: false, error: `its output cannot be used: ${field}: ${issue?.message ?? "not as expected"}` };
}

/**
 * Maps field names of Claude hooks, including fields nested in `hookSpecificOutput`, to our own. Without this a denial
 * written for Claude would be ignored, which would act as an approval.
 */
function inOurWords(point: HookPoint, value: Record<string, unknown>): Record<string, unknown> {
  const { hookSpecificOutput: inner, ...outer } = value;
  const said: Record<string, unknown> = isObject(inner) ? { ...outer, ...inner } : outer;
  if (point === "preToolUse") {
    const { modifiedArguments, updatedInput, decision, reason } = said;
    said.modifiedArgs ??= modifiedArguments ?? updatedInput;
    said.permissionDecision ??= decision === "block" ? "deny" : decision === "approve" ? "allow" : decision;
    if (decision !== undefined) said.permissionDecisionReason ??= reason;
  }
  if (point === "permissionRequest" && isObject(said.decision)) Object.assign(said, said.decision);
  return Object.fromEntries(Object.entries(said).filter(([, field]) => field !== undefined));
}

/** Returns the start of an unexpected text, sanitised and quoted for an error message. */
const excerpt = (text: string): string => JSON.stringify(clip(sanitise(text.slice(0, 400)).trim(), 120));

/** Returns the message of any thrown value. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof z.ZodError) return z.prettifyError(thrown);
  return thrown instanceof Error ? thrown.message : String(thrown);
}
