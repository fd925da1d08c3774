import { MEMORY_AGENT } from "../../agents/agent.ts";
import { noUsage } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Limits } from "../../session/budget/budget.ts";
import { Credits } from "../../session/budget/credits.ts";
import { modelName } from "../../session/model-selection.ts";
import type { SessionModel } from "../../session/session-model.ts";
import { githubServer } from "../mcp/github-server.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { chooseLead, type Lead, limitsOfLead } from "./preselect.ts";
import type { SessionSetup } from "./session-setup.ts";

/** Who leads a session, and within which limits. On which model is in the draft's `models` from then on. */
export interface MainAgent {
  readonly lead: Lead;
  /** What the folder brings, with the servers of who leads. */
  readonly workspace: Workspace;
  /** As of now: credits may become more. */
  limits(): Limits;
  readonly credits: Credits;
}

export async function mainAgent(draft: SessionSetup): Promise<MainAgent> {
  const { request, log, models, environment, home, context, listener } = draft;
  const { lastModel: last } = draft;
  const isOfEnvironment = environmentNames(environment) && !last?.isChosen;
  const wanted = request.model ?? (isOfEnvironment ? undefined : last?.reference);
  const [named, opened] = await Promise.all([
    wanted === undefined ? undefined : models.resolve(wanted),
    githubServer(draft).then((builtinServers) =>
      openWorkspace(
        { ...request.workspace, builtinServers },
        {
          ...{ context, stateRoot: home, environment, onNotice: listener.notice },
          denyTools: request.permissions?.denyTools ?? [],
        },
      ),
    ),
  ]);
  const lead = await chooseLead({
    wanted: request.agent,
    events: log.events,
    workspace: opened,
    isOurs: request.detachedFrom !== undefined && request.agent === MEMORY_AGENT,
    warn: (message) => listener.warn("agent", message),
  });
  const { effective } = opened.settings;
  const isChosen = request.model !== undefined || isOfEnvironment;
  // A model that settings name is one of what is configured, and the session may have another provider for everything.
  const usual = isOfEnvironment || request.providers?.provider ? undefined : effective.model;
  const model =
    (isChosen ? undefined : await lead.model((name) => models.resolve(name))) ?? named ?? (await models.resolve(usual));
  if (model.absent) {
    listener.warn("model", `${model.absent.why}. The models are asked for again with the next message.`);
  }
  const limits = limitsOfLead(lead.definition, request.limits);
  const credits = creditsOf(draft, model);
  if (limits?.costUsd !== undefined && model.costOf(noUsage) === null) throw priceUnknown(model.model);
  const ofLead = request.agent === undefined ? undefined : lead.reasoningEffort;
  const effort = request.reasoningEffort ?? ofLead ?? last?.effort ?? lead.reasoningEffort ?? effective.effortLevel;
  models.begin(model, { effort, summary: request.reasoningSummary ?? last?.summary });
  return { lead, workspace: lead.workspace, limits: () => credits.within(limits ?? {}), credits };
}

/** Where nobody knows what a model costs the agent is told of its credits, and more cannot be done. */
function creditsOf({ request: { credits }, listener }: SessionSetup, model: SessionModel): Credits {
  const isHeld = model.costOf(noUsage) !== null;
  if (credits !== undefined && !isHeld) {
    const message = `The price of ${modelName(model)} is not known, so the limit of ${credits} AI credits is told to the agent and cannot be kept.`;
    listener.warn("limits", message);
  }
  return new Credits(credits, { isHeld });
}

/** Who names a model for this process means it: before what a resumed session happened to have, and what settings say. */
function environmentNames(environment: SessionSetup["environment"]): boolean {
  return Boolean(environment.TROUPE_MODEL || environment.COPILOT_MODEL);
}

/** A limit that cannot be held is refused, not forgotten. */
function priceUnknown(model: string): TroupeError {
  return new TroupeError("configuration", `A cost limit cannot be kept: the price of ${model} is not known.`, {
    hint: "Give its price in providers.json, or limit tokens instead (--max-tokens).",
  });
}
