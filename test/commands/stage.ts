/** What the tests of commands share: a context that remembers what it was asked. */
import type { CommandContext, CommandResult } from "../../src/commands/command.ts";
import { builtinCommands } from "../../src/commands/list.ts";
import { runCommand } from "../../src/commands/parse-command.ts";
import type { ScheduleEntry } from "../../src/commands/ports.ts";
import type { EventOf, EventType, SessionEvent } from "../../src/protocol/event.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

export interface Stage {
  readonly context: CommandContext;
  /** Everything that was asked of a port, as "port.method argument". */
  readonly asked: string[];
}

export function stage(more: Partial<CommandContext> = {}): Stage {
  const asked: string[] = [];
  const ask = (what: string): void => void asked.push(what);
  const scheduled: ScheduleEntry[] = [];
  const context: CommandContext = {
    mode: "interactive",
    filesFolder: "/state/files",
    now: () => NOW,
    agents: {
      list: () => [
        { name: "explore", description: "Looks around" },
        { name: "Doc Writer", description: "Writes\u001b[2J documents" },
        { name: "hidden", description: "For agents", userInvocable: false },
        { name: "rem-agent", description: "Tidies memory" },
      ],
      selected: () => "explore",
      select: async (name) => ask(`agents.select ${name}`),
    },
    tasks: {
      list: () => [task("scan", {}), task("scan-part", { parentId: "scan", lastActivity: "grep" })],
      show: async (id) => `report of ${id}`,
      stop: async (id) => ask(`tasks.stop ${id}`),
      promote: async (id) => ask(`tasks.promote ${id}`),
    },
    schedules: {
      async add(request) {
        const entry = { ...request, id: scheduled.length + 1, nextRunAt: NOW + request.intervalMs };
        scheduled.push(entry);
        return entry;
      },
      list: () => scheduled,
      stop: async (id) => scheduled.find((entry) => entry.id === id),
    },
    models: {
      current: () => "local/small",
      list: async () => ["local/small", "local/large"],
      async select(name) {
        ask(`models.select ${name}`);
        return name;
      },
    },
    permissions: { describe: () => ["allow shell(git log:*)"], reset: async () => 2 },
    skills: () => [{ commandName: "release-notes", name: "Release Notes", description: "Writes notes" }],
    servers: async () => [{ name: "github", status: "failed", tools: 0, error: "no token" }],
    usage: () => ({ turns: 3, inputTokens: 12_000, outputTokens: 345, costUsd: null, durationMs: 65_000 }),
    addDirectory: async (path) => `/real/${path}`,
    undo: async () => "1 file is as it was.",
    history: {
      list: async () => "1  first",
      rewind: async (number, { files }) => `rewound to ${number}${files ? " with files" : ""}`,
      restore: async ({ files }) => `restored${files ? " with files" : ""}`,
      fork: async (number) => `forked at ${number ?? "the end"}`,
    },
    rename: async (name) => ask(`rename ${name}`),
    ...more,
  };
  return { context, asked };
}

function task(id: string, more: { parentId?: string; lastActivity?: string }) {
  const counts = { elapsedMs: 61_000, toolCalls: 4, tokens: 900 };
  return {
    id,
    agentType: "explore",
    description: "Read all",
    status: "running",
    mode: "sync" as const,
    ...counts,
    ...more,
  };
}

export function typed(text: string, { context }: Stage = stage()): Promise<CommandResult | undefined> {
  return runCommand(text, context, { commands: builtinCommands, isPath: (path) => ["/etc", "/tmp"].includes(path) });
}

/** An event as a log holds it. */
export function logged<T extends EventType>(type: T, data: EventOf<T>["data"], agentId?: string): SessionEvent {
  const envelope = { id: "e", timestamp: new Date(NOW).toISOString(), parentId: null };
  return { ...envelope, ...(agentId !== undefined && { agentId }), type, data } as SessionEvent;
}

/** The two events of one call. */
export function called(
  toolName: string,
  callArguments: Record<string, string>,
  { success = true, agentId }: { success?: boolean; agentId?: string } = {},
): SessionEvent[] {
  const toolCallId = `${toolName}-${Math.random()}`;
  return [
    logged("tool.execution_start", { toolCallId, toolName, arguments: callArguments }, agentId),
    logged("tool.execution_complete", { toolCallId, success }, agentId),
  ];
}
