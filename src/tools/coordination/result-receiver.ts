import { defined } from "../../lib/defined.ts";
import type { WorkerStep } from "./coordination.ts";
import { limitSubmission, misfit, problemsOf, Submission } from "./submission.ts";
import { WORKSPACE_TOOLS } from "./tool-groups.ts";

type SchemaCheck =
  /** The worker is done, with a valid result or with one that stayed invalid. */
  | { readonly kind: "taken"; readonly message: string }
  /** The worker continues and must correct its result. */
  | { readonly kind: "returned"; readonly message: string };

/** Accepts the result of one worker. */
export interface ResultReceiver {
  /** Records that the worker called a tool, whatever the outcome. */
  called(toolName: string): void;
  submit(payload: unknown): SchemaCheck;
  /** Marks the worker and its open steps as ended. */
  close(): void;
  /** Returns the accepted result, if any. */
  taken(): Submission | undefined;
}

const MAX_RETURNS = 2;

export function openResultReceiver(worker: {
  readonly tools: readonly string[];
  /** The success criteria of the request. */
  readonly criteria?: readonly string[];
  onStep(step: WorkerStep): void;
}): ResultReceiver {
  const { criteria = [] } = worker;
  const canRead = worker.tools.some((name) => WORKSPACE_TOOLS.includes(name));
  const calls = new Map<string, number>();
  let returns = 0;
  let result: Submission | undefined;

  return {
    called(toolName) {
      const count = (calls.get(toolName) ?? 0) + 1;
      calls.set(toolName, count);
      worker.onStep(toolStep(toolName, count, "running"));
    },
    submit(payload) {
      if (result !== undefined) return { kind: "taken", message: "A result was already submitted; it is final." };
      const parsed = Submission.safeParse(payload);
      if (!parsed.success) {
        const problems = problemsOf(parsed.error);
        returns += 1;
        if (returns <= MAX_RETURNS)
          return { kind: "returned", message: `Not accepted: ${problems}\nFix it and submit again.` };
        result = misfit(payload, problems);
        return { kind: "taken", message: "Recorded as failed: the result does not fit the schema." };
      }
      const hasRead = WORKSPACE_TOOLS.some((name) => calls.has(name));
      if (parsed.data.status === "blocked" && canRead && !hasRead) return { kind: "returned", message: UNTRIED };
      const open = unanswered(criteria, parsed.data);
      if (open.length > 0 && ++returns <= MAX_RETURNS) return { kind: "returned", message: unansweredText(open) };
      result = parsed.data;
      for (const step of limitSubmission(result).steps) worker.onStep(workStep(step));
      return { kind: "taken", message: "Result accepted." };
    },
    close() {
      for (const [name, count] of calls) worker.onStep(toolStep(name, count, "completed"));
    },
    taken: () => result,
  };
}

/** Returns the numbers of the criteria that a completed result does not answer. */
function unanswered(criteria: readonly string[], { status, criteria: answers = [] }: Submission): readonly number[] {
  if (status !== "completed") return [];
  return criteria.map((_, index) => index + 1).filter((wanted) => !answers.some(({ number }) => number === wanted));
}

const unansweredText = (open: readonly number[]): string =>
  `Not accepted: answer each criterion of the task under \`criteria\` (number, met, evidence). Missing: ${open.join(", ")}.`;

const UNTRIED = `Not accepted: you have not inspected the workspace yet. Use ${WORKSPACE_TOOLS.join(", ")}, then submit what you found. Use blocked only for what you tried.`;

function toolStep(toolName: string, count: number, status: WorkerStep["status"]): WorkerStep {
  return { stepId: `tool-${toolName}`, title: toolName, status, note: count === 1 ? "1 call" : `${count} calls` };
}

function workStep({ id, title, status, note }: Submission["steps"][number]): WorkerStep {
  return { stepId: `work-${id}`, title, status: statusOf(status), ...defined({ note }) };
}

/** Maps the many words that models use to a status. */
function statusOf(said: string): WorkerStep["status"] {
  return (
    STATUS_WORDS.get(
      said
        .trim()
        .toLowerCase()
        .replace(/[\s-]+/g, "_"),
    ) ?? "info"
  );
}

const STATUS_WORDS: ReadonlyMap<string, WorkerStep["status"]> = new Map([
  ["completed", "completed"],
  ["complete", "completed"],
  ["done", "completed"],
  ["in_progress", "running"],
  ["running", "running"],
  ["blocked", "blocked"],
  ["failed", "failed"],
  ["skipped", "skipped"],
  ["warning", "warning"],
]);
