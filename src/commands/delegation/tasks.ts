/**
 * The command `/tasks`. This folder holds the commands that let agents work: modes, fleets, research, review and tasks.
 */
import { nearest } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { defineCommand } from "../command.ts";
import { clipLine, duration, joinLines } from "../lines.ts";
import type { TaskEntry } from "../ports.ts";

const ACTIONS = ["show", "stop", "promote"] as const;

export const tasks = defineCommand({
  name: "tasks",
  summary: "Show the agents, read or stop one, or move it to the background",
  argumentHint: "[show|stop|promote <id>]",
  harmless: (argumentText) => argumentText === "" || /^show\b/i.test(argumentText),
  needs: ["tasks"],
  async run(argumentText, { tasks: port }) {
    const [word = "", id = "", ...rest] = argumentText.split(/\s+/);
    if (word === "") return { kind: "completed", text: overview(port.list()) };
    const action = ACTIONS.find((one) => one === word.toLowerCase());
    if (action === undefined || id === "" || rest.length > 0) {
      const hint = "Write /tasks, or /tasks show, stop or promote and the id of one.";
      throw new TroupeError("usage", "/tasks does not understand this.", { hint });
    }
    const task = findEntry(id, port.list());
    if (action === "show") return { kind: "completed", text: await port.show(task.id) };
    if (action === "stop") await port.stop(task.id);
    else await port.promote(task.id);
    return {
      kind: "completed",
      text: action === "stop" ? `${task.id} is stopped.` : `${task.id} continues in the background.`,
    };
  },
});

function overview(entries: readonly TaskEntry[]): string {
  if (entries.length === 0) return "No agent has been started.";
  return joinLines(entries.map((entry) => `${"  ".repeat(depthOf(entry, entries))}${line(entry)}`));
}

function line(entry: TaskEntry): string {
  const { id, agentType, status, mode, elapsedMs, toolCalls, tokens, description } = entry;
  const now = entry.waitingFor === undefined ? entry.lastActivity : `waiting for ${entry.waitingFor}`;
  const facts = [
    `${clipLine(agentType, 60)}, ${mode}`,
    clipLine(status, 40),
    duration(elapsedMs),
    `${toolCalls} calls, ${tokens} tokens`,
    ...(entry.intent === undefined ? [] : [clipLine(entry.intent, 80)]),
    ...(now === undefined ? [] : [clipLine(now, 80)]),
  ];
  return `${clipLine(id, 80)}  ${facts.join(" · ")}  ${clipLine(description, 100)}`.trimEnd();
}

const MAX_DEPTH_SHOWN = 8;

/** Returns the number of ancestors in the list. The limit also ends a cycle. */
function depthOf(entry: TaskEntry, entries: readonly TaskEntry[]): number {
  let depth = 0;
  for (let above = entry.parentId; above !== undefined && depth < MAX_DEPTH_SHOWN; ) {
    const parent = entries.find(({ id }) => id === above);
    if (!parent) break;
    depth++;
    above = parent.parentId;
  }
  return depth;
}

function findEntry(id: string, entries: readonly TaskEntry[]): TaskEntry {
  const entry = entries.find((one) => one.id === id);
  if (entry) return entry;
  const meant = nearest(
    id,
    entries.map((one) => one.id),
  );
  const hint = meant === undefined ? "/tasks lists them." : `Did you mean ${clipLine(meant)}?`;
  throw new TroupeError("usage", `There is no task ${JSON.stringify(clipLine(id, 80))}.`, { hint });
}
