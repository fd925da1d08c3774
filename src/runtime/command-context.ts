/** Connects slash commands to a session. */

import type { CommandContext } from "../commands/command.ts";
import type { TaskEntry } from "../commands/ports.ts";
import { defined } from "../lib/defined.ts";
import { plural } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { modelName } from "../session/model-selection.ts";
import type { ScheduleRegistry } from "../session/modes/schedules.ts";
import type { Session } from "../session/session.ts";
import { historyPort } from "./sessions/history-port.ts";

/** Returns the command ports that the session supports. */
export function contextOf(session: Session): CommandContext {
  const { services } = session.workspace;
  const { tasks } = session.agents;
  return {
    mode: session.mainAgent.modes.current,
    filesFolder: services?.filesFolder ?? "",
    now: () => Date.now(),
    ...(services && {
      skills: () => services.skills.filter(({ enabled, userInvocable }) => enabled && userInvocable).map(skillEntry),
      servers: () => services.servers(),
      ...defined({ agents: services.agents, signIn: services.signIn, serverPrompts: services.serverPrompts }),
      ...schedulesOf(services.schedules?.()),
    }),
    ...(tasks && {
      tasks: {
        list: (): readonly TaskEntry[] => [...tasks.list(), ...commandsAtWork(session)],
        async show(id) {
          const { task, answers, error } = await tasks.report(id);
          const answerText = answers.map(({ response }) => response).join("\n\n");
          return [`${task.id} (${task.agentType}): ${task.status}`, answerText, error ?? ""]
            .filter(Boolean)
            .join("\n\n");
        },
        async stop(id) {
          await tasks.cancel(id);
        },
        async promote(id) {
          await tasks.promote(id);
        },
      },
    }),
    usage: () => {
      const { calls, usage, costUsd, durationMs } = session.record.budget.session;
      return { turns: calls, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens, costUsd, durationMs };
    },
    permissions: {
      describe: () => [
        ...session.permissions.grants.sessionApprovals.map(
          (approval) => `approved for this session: ${JSON.stringify(approval)}`,
        ),
        ...session.permissions.grants.locationApprovals.map(
          (approval) => `approved for this location: ${JSON.stringify(approval)}`,
        ),
      ],
      async reset() {
        const count = session.permissions.grants.sessionApprovals.length;
        session.permissions.grants.resetSession();
        return count;
      },
    },
    ...modelsPort(session),
    ...contextPort(session),
    ...historyPort(session),
    rename: (name) => session.record.emit("troupe.session_named", { name }),
  };
}

const skillEntry = ({ name, description }: { readonly name: string; readonly description: string }) => ({
  name,
  description,
  commandName: name.toLowerCase().replace(/\s+/g, "-"),
});

/** Returns the background shell commands as entries of the task list. */
function commandsAtWork({ workspace }: Session): readonly TaskEntry[] {
  const shells = workspace.shells?.list() ?? [];
  return shells.map(({ shellId, command, state, exitCode, mode }) => ({
    id: shellId,
    agentType: mode === "detached" ? "shell, detached" : "shell",
    description: command,
    status: exitCode === undefined ? state : `${state} with code ${exitCode}`,
    mode: "background",
    elapsedMs: 0,
    toolCalls: 0,
    tokens: 0,
  }));
}

function schedulesOf(schedules: ScheduleRegistry | undefined): Pick<CommandContext, "schedules"> {
  if (!schedules) return {};
  return {
    schedules: {
      add: (request) => schedules.add(request),
      list: () => schedules.list(),
      stop: (id) => schedules.stop(id),
    },
  };
}

function contextPort(session: Session): Pick<CommandContext, "context"> {
  const { context } = session.mainAgent;
  if (!context) return {};
  return {
    context: {
      async compact(focus) {
        const end = await context.compact({ ...(focus !== "" && { focus }), trigger: "manual" });
        if (!end.success) throw new TroupeError("failed", end.error);
        return `${plural(end.messagesRemoved, "message")} became a summary (checkpoint ${end.checkpointNumber}).`;
      },
      async report() {
        const { contextText } = await import("../session/compaction/context-report.ts");
        return contextText(await context.report());
      },
    },
  };
}

function modelsPort({ mainAgent: { selection } }: Session): Pick<CommandContext, "models"> {
  if (!selection) return {};
  return {
    models: {
      current: () => modelName(selection.current),
      list: async () => (await selection.list()).filter(({ usable }) => usable).map(({ id }) => id),
      async select(name) {
        await selection.select(name, { source: "model_command" });
        return modelName(selection.current);
      },
    },
  };
}
