/**
 * A faux model from a JSON file, for `--model faux:script.json`:
 *
 *     { "steps": [
 *         { "say": "I look first.", "call": { "name": "view", "arguments": { "path": "a.txt" } } },
 *         { "calls": [{ "name": "grep", "arguments": { "pattern": "b" } }, { "name": "glob", "id": "call_7" }] },
 *         { "think": "Hm.", "say": "Done.", "chunkSize": 4, "usage": { "inputTokens": 120 } },
 *         { "agent": "explorer", "say": "only for the agent explorer" },
 *         { "fail": { "status": 500 } }, { "rateLimit": { "retryAfterSeconds": 1 } },
 *         { "say": "half a", "stall": true }, { "breakOff": "half a sen" }
 *       ],
 *       "otherwise": { "say": "for every call beyond the steps" },
 *       "usage": { "inputTokens": 100, "outputTokens": 20 } }
 *
 * A step is one reply (`say`, `think`, `call`, `calls` together), a failure (`fail`, `rateLimit`), or a reply that
 * stays unfinished (`stall` until the caller gives up, `breakOff`). `usage` on top holds for steps without their own.
 */

import { readFile, stat } from "node:fs/promises";
import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { type Json, parseJson } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ModelErrorKind } from "../model-error.ts";
import type { Usage } from "../provider.ts";
import { type FauxModel, fauxProvider } from "./faux-model.ts";
import { forAgent, otherwise, type Step } from "./faux-plan.ts";
import * as step from "./faux-step.ts";

const MAX_SCRIPT_BYTES = 16 * 1024 * 1024;

/** Reads a script file. Every error names the file, and the step and field if known. */
export async function readFauxModel(path: string): Promise<FauxModel> {
  const { size } = await stat(path).catch((cause: unknown) => {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") throw bad(path, "there is no such file");
    throw bad(path, `cannot be read: ${cause instanceof Error ? cause.message : cause}`);
  });
  if (size > MAX_SCRIPT_BYTES) throw bad(path, `is ${size} bytes; at most ${MAX_SCRIPT_BYTES} are read`);
  return fauxProvider({ steps: parseFauxScript(await readFile(path, "utf8"), path), file: path });
}

/** Returns the steps of a script, for `fauxModel(...steps)` or a model server. */
export function parseFauxScript(text: string, source = "script"): readonly Step[] {
  const json = parseJson(text);
  if (!json.ok) throw bad(source, `is not JSON: ${json.error}`);
  const parsed = Script.safeParse(json.value);
  if (!parsed.success) throw bad(source, parsed.error.issues.map(describe).join("; "));
  const { steps, usage } = parsed.data;
  const played = steps.map((scripted): Step => {
    const moves = movesOf(scripted, usage);
    return scripted.agent === undefined ? moves : forAgent(scripted.agent, moves);
  });
  return parsed.data.otherwise ? [...played, otherwise(movesOf(parsed.data.otherwise, usage))] : played;
}

const tokens = z.int().min(0);
const UsageFields = z.strictObject({
  inputTokens: tokens.exactOptional(),
  outputTokens: tokens.exactOptional(),
  cacheReadTokens: tokens.exactOptional(),
  cacheWriteTokens: tokens.exactOptional(),
  reasoningTokens: tokens.exactOptional(),
  webSearches: tokens.exactOptional(),
} satisfies Record<keyof Usage, z.ZodType>);

const JsonValue: z.ZodType<Json> = z.json();
const Call = z.strictObject({
  name: z.string().min(1),
  arguments: JsonValue.exactOptional(),
  id: z.string().min(1).exactOptional(),
});

const kinds = {
  authentication: "authentication",
  quota: "quota",
  request: "request",
  context_length: "context_length",
  rate_limit: "rate_limit",
  server: "server",
  network: "network",
  timeout: "timeout",
  protocol: "protocol",
  content_filter: "content_filter",
  internal: "internal",
} as const satisfies { [K in ModelErrorKind]: K };

const Failure = z
  .strictObject({
    status: z.int().min(400).max(599).exactOptional(),
    kind: z.enum(kinds).exactOptional(),
    message: z.string().exactOptional(),
    code: z.string().exactOptional(),
    retryAfterSeconds: z.number().min(0).exactOptional(),
  })
  .refine(({ status, kind }) => (status === undefined) !== (kind === undefined), {
    error: "give either a status or a kind",
  });

const ScriptedStep = z
  .strictObject({
    agent: z.string().min(1).exactOptional(),
    say: z.union([z.string(), z.array(z.string())], { error: "expected a text or a list of texts" }).exactOptional(),
    chunkSize: z.int().min(1).exactOptional(),
    think: z.string().exactOptional(),
    call: Call.exactOptional(),
    calls: z.array(Call).min(1).exactOptional(),
    fail: Failure.exactOptional(),
    rateLimit: z.strictObject({ retryAfterSeconds: z.number().min(0).exactOptional() }).exactOptional(),
    stall: z.literal(true).exactOptional(),
    breakOff: z.string().exactOptional(),
    usage: UsageFields.exactOptional(),
  })
  .check((context) => {
    const problem = conflict(context.value);
    if (problem) context.issues.push({ code: "custom", input: context.value, message: problem });
  });
type ScriptedStep = z.infer<typeof ScriptedStep>;

const Script = z.strictObject({
  steps: z.array(ScriptedStep),
  otherwise: ScriptedStep.exactOptional(),
  usage: UsageFields.exactOptional(),
});

function conflict(scripted: Partial<ScriptedStep>): string | undefined {
  const { say, think, call, calls, fail, rateLimit, stall, breakOff } = scripted;
  const reply = [say, think, call, calls].some((part) => part !== undefined);
  const ways = [fail, rateLimit, stall, breakOff].filter((way) => way !== undefined).length;
  if (!reply && ways === 0) return "is empty: give one of say, think, call, calls, fail, rateLimit, stall, breakOff";
  if (ways > 1) return "give only one of fail, rateLimit, stall, breakOff";
  if (reply && ways === 1 && !stall)
    return "fail, rateLimit and breakOff cannot be combined with a reply; only stall can";
  return undefined;
}

function movesOf(scripted: ScriptedStep, defaultUsage: Partial<Usage> | undefined): step.Moves {
  const { fail, rateLimit, breakOff } = scripted;
  if (fail)
    return step.fails(fail.kind ?? fail.status ?? 500, {
      ...defined({ message: fail.message, code: fail.code }),
      ...(fail.retryAfterSeconds !== undefined && { retryAfterMs: fail.retryAfterSeconds * 1000 }),
    });
  if (rateLimit)
    return step.rateLimited(rateLimit.retryAfterSeconds === undefined ? undefined : rateLimit.retryAfterSeconds * 1000);
  if (breakOff !== undefined) return step.breaksOff(breakOff, chunking(scripted));
  const reply = replyOf(scripted);
  if (scripted.stall) return step.together(...reply, step.stalls());
  const usage = scripted.usage ?? defaultUsage;
  const moves = step.together(...reply);
  return usage ? step.withUsage(moves, usage) : moves;
}

function replyOf(scripted: ScriptedStep): step.Moves[] {
  const { think, say, call, calls = [] } = scripted;
  const wanted = [...(call ? [call] : []), ...calls];
  return [
    ...(think === undefined ? [] : [step.thinks(think)]),
    ...(say === undefined ? [] : [step.says(say, chunking(scripted))]),
    ...(wanted.length === 0
      ? []
      : [step.calls(...wanted.map(({ name, arguments: args = {}, id = "" }) => [name, args, id] as const))]),
  ];
}

function chunking({ chunkSize }: ScriptedStep): step.SaysOptions {
  return chunkSize === undefined ? {} : { chunkSize };
}

function bad(source: string, problem: string): TroupeError {
  return new TroupeError("configuration", `faux script ${source}: ${problem}`);
}

/** Formats an issue as "step 2, field call.name: …". Steps are counted from 1. */
function describe(issue: z.core.$ZodIssue): string {
  const [top, index, ...rest] = issue.path;
  if (top !== "steps" || typeof index !== "number") {
    return issue.path.length === 0 ? issue.message : `field ${issue.path.join(".")}: ${issue.message}`;
  }
  return `step ${index + 1}${rest.length > 0 ? `, field ${rest.join(".")}` : ""}: ${issue.message}`;
}
