import { line } from "../agents/agent-text.ts";
import type { WorkerLimits } from "./coordination.ts";
import type { RoleDefinition } from "./roles.ts";
import type { WorkerRequest } from "./run-request.ts";
import { WORKSPACE_TOOLS } from "./tool-groups.ts";
import template from "./worker.md";

export function systemPrompt(worker: {
  readonly displayName: string;
  readonly role: RoleDefinition;
  readonly cwd: string;
  readonly tools: readonly string[];
  readonly limits: WorkerLimits;
}): string {
  const { tools } = worker;
  const looksFirst = WORKSPACE_TOOLS.every((name) => tools.includes(name));
  const values: Readonly<Record<string, string>> = {
    displayName: line(worker.displayName),
    role: worker.role.prompt.trim(),
    cwd: line(worker.cwd, 1000),
    tools: tools.join(", "),
    environment: tools.includes("bash") ? "- Call environment_detect before the first git command.\n" : "",
    first: looksFirst ? "- Begin with a look at the working folder: view it, or glob for its files.\n" : "",
    turns: String(worker.limits.turns),
  };
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? "").trim();
}

export function taskText({ task, successCriteria = [] }: WorkerRequest): string {
  if (successCriteria.length === 0) return task;
  const listed = successCriteria.map((criterion, index) => `${index + 1}. ${criterion}`).join("\n");
  return `${task}\n\nThe task is done when:\n${listed}\n\nAnswer each point by its number under \`criteria\` of submit_result.`;
}
