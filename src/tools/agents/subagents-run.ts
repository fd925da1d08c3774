import { plural } from "../../lib/text.ts";
import { type Coordination, DEFAULT_LIMITS, type WorkerLimits } from "../coordination/coordination.ts";
import { Environments } from "../coordination/environment.ts";
import { resultText } from "../coordination/result-pages.ts";
import { openResultReceiver } from "../coordination/result-receiver.ts";
import { builtinRoles, type RoleDefinition } from "../coordination/roles.ts";
import {
  concurrencyOf,
  displayNames,
  runRequest,
  type WorkerRequest,
  workersSchema,
} from "../coordination/run-request.ts";
import { type ReceivedWorker, runWorkers } from "../coordination/run-workers.ts";
import type { WorkerResult } from "../coordination/submission.ts";
import { provision } from "../coordination/tool-groups.ts";
import { systemPrompt, taskText } from "../coordination/worker-prompt.ts";
import { workerTools } from "../coordination/worker-tools.ts";
import type { ToolContext } from "../tool.ts";
import { defineTool, fixed, type Tool, toolMaker } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import { AGENT_TIMEOUT_MS, line } from "./agent-text.ts";
import description from "./subagents-run.md";

export interface CoordinationSettings {
  readonly roles?: readonly RoleDefinition[];
  readonly limits?: Partial<WorkerLimits>;
}

const traits = { name: "subagents_run", managesAgents: true } as const;

/** Returns the tool. Its schema lists the available roles. */
export const subagentsRunTool = toolMaker(traits, make);

function make(settings: CoordinationSettings = {}): Tool {
  const { roles = builtinRoles } = settings;
  const limits = { ...DEFAULT_LIMITS, ...settings.limits };
  const environments = new Environments();
  return defineTool({
    ...traits,
    description,
    input: fixed("subagents_run", () => runRequest(roles)),
    shown: { agents: workersSchema(roles) },
    timeoutMs: AGENT_TIMEOUT_MS,
    access: ({ agents }) =>
      agents.map(({ role, title, task }) => ({ kind: "agent", agentName: role, intention: line(title || task) })),
    async run({ agents, maxConcurrency }, context: ToolContext) {
      const { coordination, signal } = context;
      if (coordination === undefined)
        throw new ToolError("This session cannot start agents: it was opened without them.");
      const refused = coordination.refused();
      if (refused !== undefined) throw new ToolError(refused);
      const workers = withReceiver({ agents, roles, limits, environments, coordination, context });
      const concurrency = Math.min(concurrencyOf(maxConcurrency), workers.length);
      const results = await runWorkers(workers, coordination, { concurrency, signal });
      return { content: resultText(results), detailedContent: results.map(overview).join("\n") };
    },
  });
}

function withReceiver(what: {
  readonly agents: readonly WorkerRequest[];
  readonly roles: readonly RoleDefinition[];
  readonly limits: WorkerLimits;
  readonly environments: Environments;
  readonly coordination: Coordination;
  readonly context: ToolContext;
}): ReceivedWorker[] {
  const { agents, roles, limits, environments, coordination, context } = what;
  const names = displayNames(agents, roles);
  const available = coordination.tools();
  return agents.map((request, index) => {
    const role = roles.find(({ id }) => id === request.role);
    if (role === undefined) {
      const known = roles.map(({ id }) => id).join(", ");
      throw new ToolError(`There is no role ${JSON.stringify(request.role)}. The roles are: ${known}.`);
    }
    const displayName = names[index] ?? role.label;
    const provided = provision({ asked: request.allowedToolGroups, defaults: role.groups, available });
    const { tools } = provided;
    const all = [...tools, ...provided.own, "submit_result"];
    const { successCriteria: criteria = [] } = request;
    const receiver = openResultReceiver({ tools, criteria, onStep: (step) => coordination.step(request.id, step) });
    const { cwd, toolCallId: parentCallId } = context;
    const prompt = systemPrompt({ displayName, role, cwd, tools: all, limits });
    return {
      receiver,
      criteria,
      steps: provided.steps,
      spec: {
        id: request.id,
        role: role.id,
        displayName,
        systemPrompt: prompt,
        task: taskText(request),
        tools: all,
        provide: (parentTools) => workerTools(parentTools, provided, { receiver, environments }),
        limits,
        parentCallId,
      },
    };
  });
}

/** Returns one line for the user, who sees each worker's steps elsewhere. */
function overview({ displayName, status, summary, findings }: WorkerResult): string {
  return `${displayName}: ${status}, ${plural(findings.length, "finding")}. ${line(summary, 500)}`;
}
