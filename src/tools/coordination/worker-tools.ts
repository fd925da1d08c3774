import * as z from "zod";
import { submitResultTool } from "../agents/submit-result.ts";
import { taskList } from "../agents/task-list.ts";
import { environmentDetectTool } from "../environment-detect.ts";
import { memoryRead } from "../memory/memory-read.ts";
import type { Tool } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import { planRead } from "../user/plan-read.ts";
import type { Environments } from "./environment.ts";
import { gitSubcommands, readingGitCommand } from "./git-command.ts";
import type { ResultReceiver } from "./result-receiver.ts";
import type { Provision } from "./tool-groups.ts";

interface WorkerOwn {
  readonly receiver: ResultReceiver;
  readonly environments: Environments;
}

/** Tools that no other agent gets. Every worker has `submit_result`; its groups decide about the others. */
export const workerOnlyTools: readonly ((own: WorkerOwn) => Tool)[] = [
  ({ environments }) => environmentDetectTool(environments),
  () => memoryRead,
  () => planRead,
  () => taskList,
  ({ receiver }) => submitResultTool(receiver),
];

/** Returns exactly the tools of one worker: the provisioned ones, restricted to reading, and the worker-only ones. */
export function workerTools(parentTools: readonly Tool[], provided: Provision, worker: WorkerOwn): readonly Tool[] {
  const { tools, groups, own } = provided;
  const given = parentTools.filter(({ name, origin }) => origin === undefined && tools.includes(name));
  const narrowed = given.map((tool) =>
    tool.name === "bash" ? afterLooking(gitOnly(tool, gitSubcommands(groups)), worker.environments) : tool,
  );
  const mine = workerOnlyTools.map((make) => make(worker)).filter(({ name }) => own.includes(name));
  return [
    ...[...narrowed, ...mine].map((tool) => noteResult(tool, worker.receiver)),
    submitResultTool(worker.receiver),
  ];
}

/** Refuses commands until `environment_detect` has examined the folder. */
function afterLooking(tool: Tool, environments: Environments): Tool {
  return {
    ...tool,
    bind(rawArguments) {
      const bound = tool.bind(rawArguments);
      return {
        access: bound.access,
        async run(context) {
          if (!environments.has(context.cwd)) {
            throw new ToolError("Not run: call environment_detect first, then try again.", { code: "denied" });
          }
          return bound.run(context);
        },
      };
    },
  };
}

/** Records every call with the receiver, including refused ones. Refuses to run after the result was accepted. */
function noteResult(tool: Tool, receiver: ResultReceiver): Tool {
  return {
    ...tool,
    bind(rawArguments) {
      receiver.called(tool.name);
      const bound = tool.bind(rawArguments);
      return {
        access: bound.access,
        async run(context) {
          if (receiver.taken() !== undefined) throw new ToolError("Not run: the result was already submitted.");
          return bound.run(context);
        },
      };
    },
  };
}

const WAIT_SECONDS = 60;
const Command = z.object({ command: z.string() });

/** Restricts the shell to commands that read the repository, with the same permissions and sandbox. */
function gitOnly(bash: Tool, subcommands: readonly string[]): Tool {
  return {
    ...bash,
    description: `Run one git command that reads the repository: git ${subcommands.join(", git ")}. No pipes, redirections or variables.`,
    parameters: {
      type: "object",
      properties: { command: { type: "string", description: "Such as: git log --oneline -20" } },
      required: ["command"],
    },
    bind(rawArguments) {
      const parsed = Command.safeParse(rawArguments);
      if (!parsed.success) throw new ToolError(`Bad arguments for bash: ${z.prettifyError(parsed.error)}`);
      const reading = readingGitCommand(parsed.data.command, subcommands);
      if (!reading.ok) throw new ToolError(`Not run: ${reading.reason}.`, { code: "denied" });
      return bash.bind({ command: reading.command, description: "Read the repository", initial_wait: WAIT_SECONDS });
    },
  };
}
