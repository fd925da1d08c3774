/** Runs of factories: started, taken up and looked at by clients; what their bodies ask for comes from extensions. */
import * as z from "zod";
import type { Factories } from "../../factories/factories.ts";
import type { RunLimits } from "../../factories/run-fold.ts";
import type { Json } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { FactoryError } from "../../protocol/factory-error.ts";
import { RpcError, rpcCodes } from "../../protocol/rpc/errors.ts";
import { factoryLimits } from "../client-factories.ts";
import { requireFactoryAccess } from "../factory-access.ts";
import { type MethodTable, type SessionCall, sessionMethod } from "./method.ts";

const JsonValue: z.ZodType<Json> = z.json();
const runId = () => ({ runId: z.string().min(1).max(200) });
const place = () => z.number().int().nonnegative().optional();
const paging = () => ({ afterSeq: place(), beforeSeq: place(), limit: z.number().int().positive().optional() });
const execution = () => ({ ...runId(), executionToken: z.string().min(1) });
const key = () => z.string().min(1).max(1_000);

export const factoryMethods: MethodTable = {
  "session.factory.run": sessionMethod(
    () => ({
      name: z.string().min(1),
      args: JsonValue.default({}),
      options: z.object({ limits: factoryLimits().optional(), resumeFromRunId: z.string().optional() }).optional(),
    }),
    ({ name, args, options = {} }, call) =>
      answered(call, async (factories) => {
        const limits = given(options.limits);
        const { resumeFromRunId } = options;
        if (resumeFromRunId !== undefined) return (await resumed(factories, resumeFromRunId, limits, call)).run;
        await requireFactoryAccess(call, factories.planned({ name }, limits));
        return factories.run(name, args, limits);
      }),
  ),
  "session.factory.resume": sessionMethod(
    () => ({ ...runId(), limits: factoryLimits().optional() }),
    ({ runId: id, limits }, call) => answered(call, (factories) => resumed(factories, id, given(limits), call)),
  ),
  "session.factory.getRun": sessionMethod(runId, (params, call) =>
    answered(call, (factories) => factories.get(params.runId)),
  ),
  "session.factory.listRuns": sessionMethod(paging, (params, call) =>
    answered(call, (factories) => factories.runs(params)),
  ),
  "session.factory.getRunDetail": sessionMethod(runId, (params, call) =>
    answered(call, (factories) => factories.detail(params.runId)),
  ),
  "session.factory.getRunProgress": sessionMethod(
    () => ({ ...runId(), ...paging(), phaseId: z.string().optional() }),
    ({ runId: id, ...params }, call) => answered(call, (factories) => factories.progress(id, params)),
  ),
  "session.factory.cancel": sessionMethod(runId, (params, call) =>
    answered(call, (factories) => factories.cancel(params.runId)),
  ),
  "session.factory.log": sessionMethod(
    () => ({
      ...execution(),
      lines: z.array(z.object({ seq: z.number(), kind: z.enum(["log", "phase"]), text: z.string() })).max(10_000),
    }),
    ({ lines, ...from }, call) =>
      answered(call, async (factories) => {
        await factories.log(speaker(from, call), lines);
        return {};
      }),
  ),
  "session.factory.agent": sessionMethod(
    () => ({
      factoryRunId: z.string().min(1),
      executionToken: z.string().min(1),
      prompt: z.string().min(1).max(200_000),
      opts: z
        .object({
          label: z.string().max(1_000),
          schema: JsonValue,
          model: z.string().max(200),
          reasoningEffort: z.string().max(50),
          contextTier: z.string().max(50),
          agent: z.string().max(200),
        })
        .partial()
        .default({}),
    }),
    ({ factoryRunId, executionToken, prompt, opts }, call) =>
      answered(call, async (factories) => {
        const result = await factories.agent(speaker({ runId: factoryRunId, executionToken }, call), prompt, opts);
        return result === undefined ? {} : { result };
      }),
  ),
  "session.factory.journal.get": sessionMethod(
    () => ({ ...execution(), key: key() }),
    ({ key: name, ...from }, call) => answered(call, (factories) => factories.recall(speaker(from, call), name)),
  ),
  "session.factory.journal.put": sessionMethod(
    () => ({ ...execution(), key: key(), resultJson: JsonValue }),
    ({ key: name, resultJson, ...from }, call) =>
      answered(call, async (factories) => {
        await factories.remember(speaker(from, call), name, resultJson);
        return {};
      }),
  ),
};

const speaker = (from: { runId: string; executionToken: string }, { connection }: SessionCall) => ({
  ...from,
  owner: connection,
});

async function resumed(factories: Factories, id: string, limits: RunLimits, call: SessionCall) {
  await requireFactoryAccess(call, factories.planned({ runId: id }, limits));
  return factories.resume(id, limits);
}

const given = (limits: object | undefined): RunLimits => ({ ...limits });

/** What cannot be done is told with the word that programs know it by. */
async function answered<T>({ session }: SessionCall, work: (factories: Factories) => T | Promise<T>): Promise<T> {
  const factories = await session.settings.surroundings?.factories?.open();
  if (!factories) throw new TroupeError("usage", "Factories are switched off here.", { hint: "AGENT_FACTORIES=on" });
  try {
    return await work(factories);
  } catch (error) {
    if (!(error instanceof FactoryError)) throw error;
    const { code, message, runId: id } = error;
    throw new RpcError(rpcCodes.invalidParams, message, { code, ...(id !== undefined && { runId: id }) });
  }
}
