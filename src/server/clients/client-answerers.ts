/** Clients that answer questions by callbacks: requests to the client over its connection. */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { Answerer } from "../../session/requests/broker.ts";
import type { ClientConnection } from "../connection.ts";

/** Which requests a client answers. */
interface AnsweredKinds {
  readonly requestUserInput?: boolean | undefined;
  readonly requestExitPlanMode?: boolean | undefined;
  readonly requestAutoModeSwitch?: boolean | undefined;
  readonly requestElicitation?: boolean | undefined;
}

export function answerersOf(
  connection: ClientConnection,
  sessionId: string,
  answering: AnsweredKinds,
): readonly Answerer[] {
  return [
    ...(answering.requestUserInput ? [userInputOf(connection, sessionId)] : []),
    ...(answering.requestExitPlanMode ? [planReviewOf(connection, sessionId)] : []),
    ...(answering.requestAutoModeSwitch ? [modelSwitchOf(connection, sessionId)] : []),
    // Forms are announced by events and answered by their id.
    ...(answering.requestElicitation ? [{ kinds: ["elicitation"] } as const] : []),
  ];
}

const UserInput = z.object({ answer: z.string(), wasFreeform: z.boolean().default(true) });
const PlanReview = z.object({
  approved: z.boolean(),
  selectedAction: z.enum(["exit_only", "interactive", "autopilot", "autopilot_fleet"]).exactOptional(),
  autoApproveEdits: z.boolean().exactOptional(),
  feedback: z.string().exactOptional(),
});

function userInputOf(connection: ClientConnection, sessionId: string): Answerer {
  return {
    kinds: ["user_input"],
    async handle(request, signal) {
      if (request.kind !== "user_input") return undefined;
      const { question, choices, allowFreeform } = request;
      const params = { sessionId, question, ...defined({ choices }), allowFreeform: allowFreeform ?? true };
      return UserInput.parse(await connection.ask("userInput.request", params, { signal }));
    },
  };
}

function planReviewOf(connection: ClientConnection, sessionId: string): Answerer {
  return {
    kinds: ["exit_plan_mode"],
    async handle(request, signal) {
      if (request.kind !== "exit_plan_mode") return undefined;
      const { summary, planContent, actions, recommendedAction } = request;
      const params = { sessionId, summary, planContent, actions, recommendedAction };
      return PlanReview.parse(await connection.ask("exitPlanMode.request", params, { signal }));
    },
  };
}

const ModelSwitchAnswer = z.object({ response: z.enum(["yes", "yes_always", "no"]) });

function modelSwitchOf(connection: ClientConnection, sessionId: string): Answerer {
  return {
    kinds: ["auto_mode_switch"],
    async handle(request, signal) {
      if (request.kind !== "auto_mode_switch") return undefined;
      const { errorCode, retryAfterSeconds } = request;
      const params = { sessionId, ...defined({ errorCode }) };
      const asked = { ...params, ...defined({ retryAfterSeconds }) };
      return ModelSwitchAnswer.parse(await connection.ask("autoModeSwitch.request", asked, { signal }));
    },
  };
}
