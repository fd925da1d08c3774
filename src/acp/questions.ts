import { randomUUID } from "node:crypto";
import type { ElicitationSchema, PermissionOption, ToolCallUpdate } from "@agentclientprotocol/sdk";
import * as z from "zod";
import { defined } from "../lib/defined.ts";
import { clip, sanitiseLine } from "../lib/text.ts";
import type { Peer } from "../protocol/rpc/peer.ts";
import type {
  ElicitationRequest,
  ExitPlanRequest,
  PermissionDecision,
  PermissionRequest,
  UserInputRequest,
} from "../sdk/config.ts";
import type { Abilities } from "./abilities.ts";
import { textContent } from "./content.ts";
import { askedFor, choicesFor } from "./permission.ts";
import type { Update } from "./update.ts";
import type { CallReference, Updates } from "./updates.ts";

export interface QuestionParts {
  readonly peer: Peer;
  readonly sessionId: string;
  readonly cwd: string;
  readonly abilities: Abilities;
  readonly updates: Updates;
  tell(updates: readonly Update[]): void;
}

/** Asks the editor's user on behalf of a session. A question that the user does not answer rejects. */
export class Questions {
  readonly #parts: QuestionParts;
  #stop = new AbortController();
  /** URLs that the user has opened, and the calls that wait for them. */
  readonly #visits = new Map<string, string>();

  constructor(parts: QuestionParts) {
    this.#parts = parts;
  }

  /** Cancels the open questions. */
  cancel(): void {
    this.#stop.abort(new Error("The prompt was cancelled."));
    this.#stop = new AbortController();
  }

  async permission(request: PermissionRequest, agentId: string | undefined): Promise<PermissionDecision> {
    const { updates, tell } = this.#parts;
    const stage = updates.agents.stageOf(agentId) ?? updates.agents.stageOf(undefined);
    const cwd = stage?.cwd ?? this.#parts.cwd;
    const toolCallId = (request.toolCallId && stage?.idOf(request.toolCallId)) || `permission-${randomUUID()}`;
    tell(updates.agents.waits(agentId, true));
    try {
      const optionId = await this.#choose(askedFor(request, { toolCallId, cwd }), stage?.sessionId);
      const chosen = choicesFor(request).find(({ option }) => option.optionId === optionId);
      return chosen?.decision ?? { kind: "user-not-available" };
    } finally {
      tell(updates.agents.waits(agentId, false));
    }
  }

  /** Shows a form if the editor supports forms, otherwise the choices as options. Free text needs a form. */
  async userInput(request: UserInputRequest): Promise<{ answer: string; wasFreeform: boolean }> {
    const { question, choices = [] } = request;
    const call = await this.#parts.updates.openCall("ask_user", (input) => input.question === question);
    if (this.#parts.abilities.forms) return this.#fillIn(request, call);
    if (choices.length === 0) throw new Error("This editor has no forms, so the user cannot answer in words.");
    const options = choices.map((name, index) => ({ optionId: `choice-${index}`, name, kind: "allow_once" as const }));
    const toolCall: ToolCallUpdate = {
      toolCallId: call?.toolCallId ?? `question-${randomUUID()}`,
      title: clip(sanitiseLine(question), MAX_TITLE_CHARACTERS),
      kind: "other",
      status: "pending",
      content: [textContent(question)],
    };
    const none: PermissionOption = { optionId: "none", name: NONE, kind: "reject_once" };
    const optionId = await this.#choose({ toolCall, options: [...options, none] }, call?.sessionId);
    const index = options.findIndex((option) => option.optionId === optionId);
    const answer = choices[index];
    return answer === undefined ? { answer: NONE, wasFreeform: true } : { answer, wasFreeform: false };
  }

  async #fillIn(
    { question, choices = [], allowFreeform = true }: UserInputRequest,
    call: CallReference | undefined,
  ): Promise<{ answer: string; wasFreeform: boolean }> {
    const form = await this.elicitation({
      message: question,
      requestedSchema: answerSchema(choices, allowFreeform),
      ...defined({ toolCallId: call?.toolCallId }),
    });
    const { [CHOICE]: choice, [WORDS]: words } = form.content ?? {};
    if (form.action === "accept" && typeof words === "string" && words.trim() !== "")
      return { answer: words, wasFreeform: true };
    if (form.action === "accept" && typeof choice === "string" && choices.includes(choice))
      return { answer: choice, wasFreeform: false };
    throw new Error("The user did not answer.");
  }

  async elicitation(request: ElicitationRequest): Promise<FormAnswer> {
    const { peer, abilities, updates } = this.#parts;
    const { mode = "form", elicitationSource: source, requestedSchema, url } = request;
    const isAddress = mode === "url" && url !== undefined;
    if (isAddress ? !abilities.addresses : !abilities.forms) return { action: "cancel" };
    const call = request.toolCallId === undefined ? undefined : updates.callOf(request.toolCallId);
    const elicitationId = randomUUID();
    const params = {
      sessionId: this.#parts.sessionId,
      ...call,
      message: source === undefined ? request.message : `${sanitiseLine(source)} asks: ${request.message}`,
      ...(isAddress ? { mode, url, elicitationId } : { mode: "form", requestedSchema }),
    };
    const { signal } = this.#stop;
    const { action, content } = formAnswer().parse(await peer.ask("elicitation/create", params, { signal }));
    if (isAddress && action === "accept" && call) this.#visits.set(elicitationId, call.toolCallId);
    return { action, ...(content && { content }) };
  }

  /** The call has ended, and with it the URL visit that it waited for. */
  ended(toolCallId: string): void {
    for (const [elicitationId, waiting] of this.#visits) {
      if (waiting !== toolCallId) continue;
      this.#visits.delete(elicitationId);
      this.#parts.peer.notify("elicitation/complete", { elicitationId });
    }
  }

  async plan(request: ExitPlanRequest): Promise<{ approved: boolean; selectedAction?: string }> {
    const { summary, planContent = "", actions, recommendedAction } = request;
    const offered = [recommendedAction, ...actions.filter((action) => action !== recommendedAction)];
    const options = offered.flatMap((action) => {
      const option = planOptions[action];
      return option ? [{ ...option, optionId: action }] : [];
    });
    const call = await this.#parts.updates.openCall("exit_plan_mode");
    const toolCall: ToolCallUpdate = {
      toolCallId: call?.toolCallId ?? `plan-${randomUUID()}`,
      title: "Carry out this plan?",
      kind: "switch_mode",
      status: "pending",
      content: [summary, planContent].filter((text) => text.trim() !== "").map(textContent),
    };
    const optionId = await this.#choose({ toolCall, options: [...options, KEEP_PLANNING] });
    const chosen = options.find((option) => option.optionId === optionId);
    return chosen ? { approved: true, selectedAction: chosen.optionId } : { approved: false };
  }

  /** Rejects if the user closes the question without a choice. */
  async #choose(
    question: { readonly toolCall: ToolCallUpdate; readonly options: readonly PermissionOption[] },
    sessionId = this.#parts.sessionId,
  ): Promise<string> {
    const { signal } = this.#stop;
    const asked = { sessionId, ...question };
    const answer = await this.#parts.peer.ask("session/request_permission", asked, { signal });
    const { outcome } = choiceAnswer().parse(answer);
    if (outcome.outcome !== "selected") throw new Error("The user did not choose.");
    return outcome.optionId;
  }
}

const MAX_TITLE_CHARACTERS = 300;
const NONE = "None of these";
const CHOICE = "choice";
const WORDS = "answer";

const choiceAnswer = () =>
  z.looseObject({
    outcome: z.discriminatedUnion("outcome", [
      z.looseObject({ outcome: z.literal("selected"), optionId: z.string() }),
      z.looseObject({ outcome: z.literal("cancelled") }),
    ]),
  });

interface FormAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, unknown>>;
}

const formAnswer = () =>
  z.object({
    action: z.enum(["accept", "decline", "cancel"]).catch("cancel"),
    content: z.record(z.string(), z.unknown()).nullish(),
  });

/** Returns a schema with a field for the choice, a field for text, or both. */
function answerSchema(choices: readonly string[], allowFreeform: boolean): ElicitationSchema {
  const words = { type: "string" as const, title: choices.length > 0 ? "Or in your own words" : "Answer" };
  const choice = { type: "string" as const, title: "Answer", enum: [...new Set(choices)] };
  if (choices.length === 0) return { type: "object", properties: { [WORDS]: words }, required: [WORDS] };
  if (!allowFreeform) return { type: "object", properties: { [CHOICE]: choice }, required: [CHOICE] };
  return { type: "object", properties: { [CHOICE]: choice, [WORDS]: words } };
}

const KEEP_PLANNING: PermissionOption = { optionId: "keep_planning", name: "No, keep planning", kind: "reject_once" };

const planOptions: Readonly<Record<string, Omit<PermissionOption, "optionId">>> = {
  interactive: { name: "Yes, and ask me before changes", kind: "allow_once" },
  autopilot: { name: "Yes, and work until it is done", kind: "allow_always" },
  autopilot_fleet: { name: "Yes, with several agents at once", kind: "allow_always" },
  exit_only: { name: "Accept the plan and stop here", kind: "allow_once" },
};
