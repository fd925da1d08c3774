/** The result that a worker submits, and the bounded form that reaches the coordinator. */
import * as z from "zod";
import { quoted } from "../../lib/quoting.ts";

const Step = z.object({ id: z.string(), title: z.string(), status: z.string(), note: z.string().optional() });
const Finding = z.object({
  severity: z.enum(["info", "warning", "error"]),
  title: z.string(),
  evidence: z.string().describe("Quoted lines, errors"),
  paths: z.array(z.string()).default([]).describe("path or path:line"),
});
const Artifact = z.object({
  kind: z.string().describe("plan, patch_hint, source or other"),
  title: z.string(),
  content: z.string(),
});

const Criterion = z.object({
  number: z.number().int().min(1).describe("As numbered in the task"),
  met: z.boolean(),
  evidence: z.string().default("").describe("Why, with path:line"),
});

/** Unknown fields are ignored; missing ones are rejected. */
export const Submission = z.object({
  status: z.enum(["completed", "blocked", "failed"]).describe("How it went"),
  summary: z
    .string()
    .refine((text) => text.trim() !== "", { error: "must not be empty" })
    .describe("The answer, in a few sentences"),
  steps: z.array(Step).default([]).describe("What was done"),
  findings: z.array(Finding).default([]).describe("What was found"),
  artifacts: z.array(Artifact).default([]).describe("Longer texts"),
  recommendedNextActions: z.array(z.string()).default([]).describe("For the coordinator"),
  criteria: z.array(Criterion).optional().describe("One answer per criterion, if the task has any"),
});

export type Submission = z.infer<typeof Submission>;

export interface WorkerResult extends Readonly<Omit<Submission, "criteria">> {
  /** The success criteria of the request, each with the worker's answer; absent without criteria. */
  readonly criteria?: readonly CriterionAnswer[];
  readonly id: string;
  /** The worker's id in the session, when it differs from `id`: two calls may use the same one. */
  readonly agentId?: string;
  readonly role: string;
  readonly displayName: string;
  /** Names of the parts that were cut, if any. */
  readonly truncated?: readonly string[];
  readonly meta: {
    readonly iterations: number;
    readonly outputTokensEstimate: number;
    readonly durationMs: number;
  };
}

export interface CriterionAnswer {
  readonly criterion: string;
  readonly met: boolean;
  readonly evidence: string;
}

/** Returns the criteria in order, each with the worker's answer. A criterion without an answer is not met. */
export function answersTo(criteria: readonly string[], submission: Submission | undefined): readonly CriterionAnswer[] {
  return criteria.map((criterion, index) => {
    const answer = submission?.criteria?.find(({ number }) => number === index + 1);
    const { met = false, evidence = "not answered" } = answer ?? {};
    return { criterion, met, evidence: cutText(evidence, MAX_EVIDENCE) };
  });
}

const MAX_FINDINGS = 20;
const MAX_EVIDENCE = 2000;
const MAX_ARTIFACTS = 10;
const MAX_CONTENT = 4000;
const MAX_STEPS = 50;
const MAX_ACTIONS = 20;
const MAX_PATHS = 50;
const MAX_SUMMARY = 8000;
const MAX_SHORT = 500;

/** Returns the submission within its limits and quoted as data, so that it cannot open or close one of our tags. */
export function limitSubmission(
  submission: Submission,
): Omit<Submission, "criteria"> & Pick<WorkerResult, "truncated"> {
  const { steps, findings, artifacts, recommendedNextActions: actions } = submission;
  const dropped = [
    ...leftOut(steps.length - MAX_STEPS, "steps"),
    ...leftOut(findings.length - MAX_FINDINGS, "findings"),
    ...leftOut(artifacts.length - MAX_ARTIFACTS, "artifacts"),
    ...leftOut(actions.length - MAX_ACTIONS, "next actions"),
  ];
  return {
    status: submission.status,
    summary: cutText(submission.summary, MAX_SUMMARY),
    steps: steps.slice(0, MAX_STEPS).map(({ id, title, status, note }) => ({
      id: cutText(id, MAX_SHORT),
      title: cutText(title, MAX_SHORT),
      status: cutText(status, MAX_SHORT),
      ...(note !== undefined && { note: cutText(note, MAX_EVIDENCE) }),
    })),
    findings: findings.slice(0, MAX_FINDINGS).map(({ severity, title, evidence, paths }) => ({
      severity,
      title: cutText(title, MAX_SHORT),
      evidence: cutText(evidence, MAX_EVIDENCE),
      paths: paths.slice(0, MAX_PATHS).map((path) => cutText(path, MAX_SHORT)),
    })),
    artifacts: artifacts.slice(0, MAX_ARTIFACTS).map(({ kind, title, content }) => ({
      kind: cutText(kind, MAX_SHORT),
      title: cutText(title, MAX_SHORT),
      content: cutText(content, MAX_CONTENT),
    })),
    recommendedNextActions: actions.slice(0, MAX_ACTIONS).map((action) => cutText(action, MAX_EVIDENCE)),
    ...(dropped.length > 0 && { truncated: dropped }),
  };
}

/** Returns a complete result for a worker that submitted none. */
export function withoutSubmission(status: "blocked" | "failed", summary: string): Submission {
  return { status, summary, steps: [], findings: [], artifacts: [], recommendedNextActions: [] };
}

/** Returns a failed result that quotes the invalid payload. */
export function misfit(payload: unknown, problems: string): Submission {
  const evidence = JSON.stringify(payload) ?? String(payload);
  return {
    ...withoutSubmission("failed", `The submitted result does not fit the schema: ${problems}`),
    findings: [{ severity: "error", title: "Payload of submit_result", evidence, paths: [] }],
  };
}

/** Parses a payload. An invalid one becomes a failed submission that quotes it. */
export function submissionFrom(payload: unknown): Submission {
  const parsed = Submission.safeParse(payload);
  return parsed.success ? parsed.data : misfit(payload, problemsOf(parsed.error));
}

const MAX_PROBLEM_CHARACTERS = 1500;

export function problemsOf(error: z.ZodError): string {
  return z.prettifyError(error).slice(0, MAX_PROBLEM_CHARACTERS);
}

/** Cuts the text to this many code points and marks the cut. */
export function cutText(text: string, maxCodePoints: number): string {
  const safe = quoted(text);
  if (safe.length <= maxCodePoints) return safe;
  const points = Array.from(safe);
  return points.length <= maxCodePoints ? safe : `${points.slice(0, maxCodePoints).join("")}…`;
}

function leftOut(count: number, what: string): string[] {
  return count > 0 ? [`${count} ${what} left out`] : [];
}
