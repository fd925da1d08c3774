import { BOARD_AGENT } from "../../agents/agent.ts";
import { noUsage } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Limits } from "../../session/budget/budget.ts";
import { Credits } from "../../session/budget/credits.ts";
import { modelName } from "../../session/model-selection.ts";
import type { SessionModel } from "../../session/session-model.ts";
import { githubServer } from "../mcp/github-server.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { limitsOfMainAgent, type MainAgentSelection, selectMainAgent } from "./select-main-agent.ts";
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
  const { request, log, models, environment, stateRoot, context, channel } = setup;
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
          stateRoot,
          environment,
          onNotice: channel.notice,
          denyTools: request.permissions?.denyTools ?? [],
        },
      ),
    ),
  ]);
  const selection = await selectMainAgent({
    wanted: request.agents?.main,
    events: log.events,
    workspace: opened,
    isChosenByTroupe: request.agents?.detachedFrom !== undefined && request.agents?.main === BOARD_AGENT,
    warn: (message) => channel.warn("agent", message),
  });
  const { effective } = opened.settings;
  const isChosen = request.model?.name !== undefined || isOfEnvironment;
  // Settings name a configured model, but the session may have its own provider for everything.
  const configuredModel = isOfEnvironment || request.model?.providers?.provider ? undefined : effective.model;
  const model =
    (isChosen ? undefined : await selection.model((name) => models.resolve(name))) ??
    named ??
    (await models.resolve(configuredModel));
  if (model.absent) {
    channel.warn("model", `${model.absent.why}. The list of models is requested again with the next message.`);
  }
  const { credits: maxCredits, ...requestedLimits } = request.limits ?? {};
  const limits = limitsOfMainAgent(selection.definition, requestedLimits);
  const credits = creditsOf(maxCredits, { model, channel });
  if (limits.costUsd !== undefined && model.costOf(noUsage) === null) throw priceUnknown(model.model);
  const agentEffort = request.agents?.main === undefined ? undefined : selection.reasoningEffort;
  const effort =
    request.model?.reasoningEffort ?? agentEffort ?? last?.effort ?? selection.reasoningEffort ?? effective.effortLevel;
  models.begin(model, { effort, summary: request.model?.reasoningSummary ?? last?.summary });
  return { selection, workspace: selection.workspace, limits: () => credits.within(limits), credits };
}

/** Without a known price, the agent is told of its credits but they cannot be enforced. */
function creditsOf(
  maxCredits: number | undefined,
  { model, channel }: { readonly model: SessionModel; readonly channel: SessionSetup["channel"] },
): Credits {
  const canEnforce = model.costOf(noUsage) !== null;
  if (maxCredits !== undefined && !canEnforce) {
    const message = `The price of ${modelName(model)} is not known, so the limit of ${maxCredits} AI credits is passed to the agent and cannot be enforced.`;
    channel.warn("limits", message);
  }
  return new Credits(maxCredits, { canEnforce });
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
