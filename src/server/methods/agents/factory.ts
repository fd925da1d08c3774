/** Factory runs. Clients start, resume and inspect them; extensions make the requests of their bodies. */

import * as z from "zod";
import type { Factories } from "../../../factories/factories.ts";
import type { GivenLimits } from "../../../factories/limits.ts";
import type { AttemptOptions } from "../../../factories/ports.ts";
import { defined } from "../../../lib/defined.ts";
import type { Json } from "../../../lib/json.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { FactoryError } from "../../../protocol/factory-error.ts";
import { RpcError, rpcCodes } from "../../../protocol/rpc/errors.ts";
import { factoryLimits } from "../../clients/client-factories.ts";
import { requireFactoryAccess } from "../../clients/factory-access.ts";
import { inWorkflowWords, workflowError } from "../../sessions/workflow-words.ts";
import { type Method, type MethodTable, type SessionCall, sessionMethod } from "../method.ts";

const JsonValue: z.ZodType<Json> = z.json();
const runId = () => ({ runId: z.string().min(1).max(200) });
const position = () => z.number().int().nonnegative().optional();
const paging = () => ({ afterSeq: position(), beforeSeq: position(), limit: z.number().int().positive().optional() });
const attempt = () => ({
  limits: factoryLimits().optional(),
  notifyOnComplete: z.boolean().optional(),
  logPhaseNames: z.boolean().optional(),
});
const execution = () => ({ ...runId(), executionToken: z.string().min(1) });
const key = () => z.string().min(1).max(1_000);

const runMethods: MethodTable = {
  run: sessionMethod(
    () => ({
      name: z.string().min(1),
      args: JsonValue.default({}),
      options: z.object({ ...attempt(), resumeFromRunId: z.string().optional() }).optional(),
    }),
    ({ name, args, options = {} }, call) =>
      withFactories(call, async (factories) => {
        const { limits = {}, resumeFromRunId, ...how } = options;
        if (resumeFromRunId !== undefined)
          return (await resumeRun(factories, resumeFromRunId, { limits, how }, call)).run;
        await requireFactoryAccess(call, factories.planned({ name }, limits));
        return factories.run(name, args, limits, how);
      }),
  ),
  resume: sessionMethod(
    () => ({ ...runId(), ...attempt() }),
    ({ runId: id, limits = {}, ...how }, call) =>
      withFactories(call, (factories) => resumeRun(factories, id, { limits, how }, call)),
  ),
  pause: sessionMethod(runId, (params, call) => withFactories(call, (factories) => factories.pause(params.runId))),
  pauseAtCheckpoint: sessionMethod(
    () => ({ ...execution(), key: key() }),
    ({ key: name, ...from }, call) =>
      withFactories(call, (factories) => factories.pauseAtCheckpoint(speaker(from, call), name)),
  ),
  getRun: sessionMethod(runId, (params, call) => withFactories(call, (factories) => factories.get(params.runId))),
  listRuns: sessionMethod(paging, (params, call) => withFactories(call, (factories) => factories.runs(params))),
  getRunDetail: sessionMethod(runId, (params, call) =>
    withFactories(call, (factories) => factories.detail(params.runId)),
  ),
  getRunProgress: sessionMethod(
    () => ({ ...runId(), ...paging(), phaseId: z.string().optional() }),
    ({ runId: id, ...params }, call) => withFactories(call, (factories) => factories.progress(id, params)),
  ),
  cancel: sessionMethod(runId, (params, call) => withFactories(call, (factories) => factories.cancel(params.runId))),
  log: sessionMethod(
    () => ({
      ...execution(),
      lines: z.array(z.object({ seq: z.number(), kind: z.enum(["log", "phase"]), text: z.string() })).max(10_000),
    }),
    ({ lines, ...from }, call) =>
      withFactories(call, async (factories) => {
        await factories.log(speaker(from, call), lines);
        return {};
      }),
  ),
  agent: sessionMethod(
    () => ({
      factoryRunId: z.string().min(1).optional(),
      workflowRunId: z.string().min(1).optional(),
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
    ({ factoryRunId = "", workflowRunId, executionToken, prompt, opts }, call) =>
      withFactories(call, async (factories) => {
        const from = { runId: workflowRunId ?? factoryRunId, executionToken };
        const result = await factories.agent(speaker(from, call), prompt, opts);
        return result === undefined ? {} : { result };
      }),
  ),
  "journal.get": sessionMethod(
    () => ({ ...execution(), key: key() }),
    ({ key: name, ...from }, call) => withFactories(call, (factories) => factories.recall(speaker(from, call), name)),
  ),
  "journal.put": sessionMethod(
    () => ({ ...execution(), key: key(), resultJson: JsonValue }),
    ({ key: name, resultJson, ...from }, call) =>
      withFactories(call, async (factories) => {
        await factories.remember(speaker(from, call), name, resultJson);
        return {};
      }),
  ),
};

const speaker = (from: { runId: string; executionToken: string }, { connection }: SessionCall) => ({
  ...from,
  owner: connection,
});

async function resumeRun(
  factories: Factories,
  id: string,
  { limits, how }: { limits: GivenLimits; how: AttemptOptions },
  call: SessionCall,
) {
  await requireFactoryAccess(call, factories.planned({ runId: id }, limits));
  return factories.resume(id, limits, how);
}

/** Converts failures to the error codes that programs expect. */
async function withFactories<T>({ session }: SessionCall, work: (factories: Factories) => T | Promise<T>): Promise<T> {
  const factories = await session.workspace.services?.factories?.open();
  if (!factories) throw new TroupeError("usage", "Factories are switched off here.", { hint: "AGENT_FACTORIES=on" });
  try {
    return await work(factories);
  } catch (error) {
    if (!(error instanceof FactoryError)) throw error;
    const { code, message, runId: id } = error;
    throw new RpcError(rpcCodes.invalidParams, message, { code, ...defined({ runId: id }) });
  }
}

/** The same methods under the names of SDK 1.0.15. */
function inWorkflows(method: Method): Method {
  return {
    params: method.params,
    async run(params, call) {
      try {
        return inWorkflowWords(await method.run(params, call));
      } catch (error) {
        throw workflowError(error);
      }
    },
  };
}

export const factoryMethods: MethodTable = Object.fromEntries(
  Object.entries(runMethods).flatMap(([name, method]) => [
    [`session.factory.${name}`, method],
    [`session.workflow.${name}`, inWorkflows(method)],
  ]),
);
