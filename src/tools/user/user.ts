/** The port through which tools of this folder reach the user, if a client can show a question. */

export interface Question {
  readonly question: string;
  readonly choices?: readonly string[];
  readonly allowFreeform: boolean;
  readonly toolCallId: string;
}

export interface UserAnswer {
  readonly answer: string;
  /** True for free text instead of one of the choices. */
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
  /** Like `ask`, with several fields at once; absent when no client shows forms. */
  askForm?(form: Form, signal: AbortSignal): Promise<FormAnswer | "unavailable">;
  /**
   * Resolves with "unavailable" when no client can answer, or none did in time. Rejects with the signal's reason on
   * abort.
   */
  ask(question: Question, signal: AbortSignal): Promise<UserAnswer | "unavailable">;
  /** On approval, the mode has changed before this resolves. */
  reviewPlan(proposal: PlanProposal, signal: AbortSignal): Promise<PlanDecision | "unavailable">;
}

/** Maximum wait for an answer of the user; callers may choose a shorter one. */
export const PERSON_TIMEOUT_MS = 24 * 60 * 60 * 1000;
