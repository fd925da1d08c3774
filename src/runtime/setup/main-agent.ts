import { MEMORY_AGENT } from "../../agents/agent.ts";
import { noUsage } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Limits } from "../../session/budget/budget.ts";
import { Credits } from "../../session/budget/credits.ts";
import { modelName } from "../../session/model-selection.ts";
import type { SessionModel } from "../../session/session-model.ts";
import { githubServer } from "../mcp/github-server.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { limitsOfMainAgent, type MainAgentSelection, selectMainAgent } from "./preselect.ts";
import type { SessionSetup } from "./session-setup.ts";

/** The main agent of a session and its limits. Its model is set in the setup's `models`. */
export interface MainAgent {
  readonly selection: MainAgentSelection;
  /** The workspace, including the main agent's servers. */
  readonly workspace: Workspace;
  /** Returns current limits, because credits may be added. */
  limits(): Limits;
  readonly credits: Credits;
}

export async function resolveMainAgent(setup: SessionSetup): Promise<MainAgent> {
  const { request, log, models, environment, home, context, listener } = setup;
  const { lastModel: last } = setup;
  const isOfEnvironment = environmentNames(environment) && !last?.isChosen;
  const wanted = request.model?.name ?? (isOfEnvironment ? undefined : last?.reference);
  const [named, opened] = await Promise.all([
    wanted === undefined ? undefined : models.resolve(wanted),
    githubServer(setup).then((builtinServers) =>
      openWorkspace(
        { ...request.workspace, builtinServers },
        {
          context,
          stateRoot: home,
          environment,
          onNotice: listener.notice,
          denyTools: request.permissions?.denyTools ?? [],
        },
      ),
    ),
  ]);
  const selection = await selectMainAgent({
    wanted: request.agents?.main,
    events: log.events,
    workspace: opened,
    isOurs: request.agents?.detachedFrom !== undefined && request.agents?.main === MEMORY_AGENT,
    warn: (message) => listener.warn("agent", message),
  });
  const { effective } = opened.settings;
  const isChosen = request.model?.name !== undefined || isOfEnvironment;
  // Settings name a configured model, but the session may have its own provider for everything.
  const usual = isOfEnvironment || request.model?.providers?.provider ? undefined : effective.model;
  const model =
    (isChosen ? undefined : await selection.model((name) => models.resolve(name))) ??
    named ??
    (await models.resolve(usual));
  if (model.absent) {
    listener.warn("model", `${model.absent.why}. The list of models is requested again with the next message.`);
  }
  const { credits: most, ...given } = request.limits ?? {};
  const limits = limitsOfMainAgent(selection.definition, given);
  const credits = creditsOf(most, { model, listener });
  if (limits.costUsd !== undefined && model.costOf(noUsage) === null) throw priceUnknown(model.model);
  const ofAgent = request.agents?.main === undefined ? undefined : selection.reasoningEffort;
  const effort =
    request.model?.reasoningEffort ?? ofAgent ?? last?.effort ?? selection.reasoningEffort ?? effective.effortLevel;
  models.begin(model, { effort, summary: request.model?.reasoningSummary ?? last?.summary });
  return { selection, workspace: selection.workspace, limits: () => credits.within(limits), credits };
}

/** Without a known price, the agent is told of its credits but they cannot be enforced. */
function creditsOf(
  most: number | undefined,
  { model, listener }: { readonly model: SessionModel; readonly listener: SessionSetup["listener"] },
): Credits {
  const isHeld = model.costOf(noUsage) !== null;
  if (most !== undefined && !isHeld) {
    const message = `The price of ${modelName(model)} is not known, so the limit of ${most} AI credits is passed to the agent and cannot be enforced.`;
    listener.warn("limits", message);
  }
  return new Credits(most, { isHeld });
}

/** A model in the environment wins over a resumed session's last model and over settings. */
function environmentNames(environment: SessionSetup["environment"]): boolean {
  return Boolean(environment.TROUPE_MODEL || environment.COPILOT_MODEL);
}

/** A limit that cannot be enforced is refused, not ignored. */
function priceUnknown(model: string): TroupeError {
  return new TroupeError("configuration", `A cost limit cannot be enforced: the price of ${model} is not known.`, {
    hint: "Give its price in providers.json, or limit tokens instead (--max-tokens).",
  });
}
