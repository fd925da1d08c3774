import type { FactContent } from "../../context/memory/memory.ts";
import { type Optimise, parseLines } from "../../context/memory/repository-file.ts";
import { estimateTokens } from "../../lib/tokens.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import { type ModelEnd, type ModelRequest, noUsage } from "../../model/provider.ts";
import type { Emit } from "../../protocol/event.ts";
import { reportUsage } from "../../session/budget/report-usage.ts";
import type { SessionModel } from "../../session/session-model.ts";
import system from "./memory-merge.md";

/** Limit for the last model call, because an ending session waits for it. */
const MAX_MS = 10_000;
const MAX_OUTPUT_TOKENS = 16_384;
const MAX_CHARACTERS = 256 * 1024;

/** Merges duplicate facts with the session's model and reports the cost. Throws if the model does not finish. */
export function modelMerge(modelNow: () => SessionModel, emit: Emit): Optimise {
  return async (facts) => {
    if (facts.length < 2) return facts;
    const model = modelNow();
    const content = facts.map((fact) => JSON.stringify(fact)).join("\n");
    const sent = { requests: 1 };
    const request: ModelRequest = {
      model: model.model,
      system,
      tools: [],
      stream: true,
      sent,
      messages: [{ role: "user", content }],
      maxOutputTokens: Math.min(model.maxOutputTokens ?? MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS),
    };
    const began = performance.now();
    const { text, end } = await listen(model, request);
    const estimate = { ...noUsage, inputTokens: estimateTokens(system + content), outputTokens: estimateTokens(text) };
    const call = { turnId: "memory", usage: end.usage ?? estimate, estimated: end.usage === undefined };
    const how = { durationMs: performance.now() - began, requests: sent.requests, finishReason: end.stop };
    if (sent.requests > 0) await reportUsage({ ...call, ...how, timeToFirstTokenMs: undefined }, model, emit);
    if (end.stop !== "done") throw new Error(end.error?.message ?? "the model did not finish");
    return factsIn(text);
  };
}

interface StreamedReply {
  text: string;
  end: ModelEnd;
}

function listen(model: SessionModel, request: ModelRequest): Promise<StreamedReply> {
  const signal = AbortSignal.timeout(MAX_MS);
  const reply: StreamedReply = { text: "", end: { type: "end", stop: "error" } };
  const listening = async (): Promise<StreamedReply> => {
    for await (const event of model.provider.stream(request, signal)) {
      if (event.type === "text") reply.text += event.delta;
      if (event.type === "end") reply.end = event;
      if (event.type === "retry") reply.text = "";
      if (reply.text.length > MAX_CHARACTERS) return { ...reply, end: { type: "end", stop: "length" } };
    }
    return reply;
  };
  return untilAborted(listening(), signal, () => ({ ...reply, end: { type: "end", stop: "aborted" } }));
}

/** Throws if a line is not a fact, because the merge would lose information. */
function factsIn(text: string): readonly FactContent[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("```"));
  const { records } = parseLines(lines.join("\n"), "the answer");
  if (records.length !== lines.length) throw new Error("the model answered with something else");
  return records;
}
