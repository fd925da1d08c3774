/** From what a hook printed, sent or returned to what it said. */
import * as z from "zod";
import { isObject } from "../lib/json.ts";
import { clip, sanitise } from "../lib/text.ts";
import { forbiddenKey, readJson } from "./bounded-json.ts";
import { type HookOutput, type HookPoint, outputSchemas } from "./points.ts";

/** Nothing said is an answer as well; an answer that cannot be read is a failure of the hook. */
export type Answer<P extends HookPoint> =
  | { readonly ok: true; readonly output: HookOutput<P> | undefined }
  | { readonly ok: false; readonly error: string };

export function readAnswer<P extends HookPoint>(point: P, text: string): Answer<P> {
  if (text.trim() === "") return { ok: true, output: undefined };
  const json = readJson(text);
  if (!json.ok) return { ok: false, error: `its output cannot be used: ${json.error}: ${excerpt(text)}` };
  return checkAnswer(point, json.value);
}

/** For values that never were text. */
export function checkAnswer<P extends HookPoint>(point: P, value: unknown): Answer<P> {
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
 * Guards written for Claude put their words one level down or name them differently. They are understood, because a
 * denial that nobody understands would be an approval.
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

/** A few words of something unexpected, safe to show. */
const excerpt = (text: string): string => JSON.stringify(clip(sanitise(text.slice(0, 400)).trim(), 120));

/** The message of anything thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof z.ZodError) return z.prettifyError(thrown);
  return thrown instanceof Error ? thrown.message : String(thrown);
}
