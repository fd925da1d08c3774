/** How tools reach the person: through whatever surface can show a question, if any can. */

export interface Question {
  readonly question: string;
  readonly choices?: readonly string[];
  readonly allowFreeform: boolean;
  readonly toolCallId: string;
}

export interface UserAnswer {
  readonly answer: string;
  /** In the person's own words rather than one of the choices. */
  readonly wasFreeform: boolean;
}

export type PlanAction = "exit_only" | "interactive" | "autopilot" | "autopilot_fleet";

export interface PlanProposal {
  readonly summary: string;
  readonly actions: readonly PlanAction[];
  readonly recommendedAction: PlanAction;
  readonly toolCallId: string;
}

export interface PlanDecision {
  readonly approved: boolean;
  readonly selectedAction?: PlanAction;
  readonly autoApproveEdits?: boolean;
  readonly feedback?: string;
}

interface Form {
  readonly message: string;
  readonly requestedSchema: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[] | undefined;
  };
  readonly toolCallId: string;
}

interface FormAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, unknown>>;
}

export interface User {
  /** As `ask`, with several fields at once; absent where no surface shows forms. */
  askForm?(form: Form, signal: AbortSignal): Promise<FormAnswer | "unavailable">;
  /** "unavailable" when nobody can answer, or nobody did in time. Rejects with the signal's reason on abort. */
  ask(question: Question, signal: AbortSignal): Promise<UserAnswer | "unavailable">;
  /** On approval the mode has changed before this resolves. */
  reviewPlan(proposal: PlanProposal, signal: AbortSignal): Promise<PlanDecision | "unavailable">;
}

/** People think, eat and sleep; whoever asks them decides how long that may take, and this is the end of it. */
export const PERSON_TIMEOUT_MS = 24 * 60 * 60 * 1000;
