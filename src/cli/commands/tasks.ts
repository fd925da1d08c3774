import { join } from "node:path";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import { clip, nearest, plural, sanitise, sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import {
  readTask,
  readTasks,
  type StoredReport,
  type StoredTask,
  stopTasks,
} from "../../runtime/agents/stored-tasks.ts";
import { stateRoot } from "../../runtime/home.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { findSession, sessionHere } from "../../runtime/sessions/select-session.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { terminalAsk } from "../ask.ts";
import { useSessions } from "../cluster/stored-sessions.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { listLines } from "../output/list-lines.ts";
import { jsonLine, jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";

/** `troupe tasks`: the agents of a session, whether it is open or not. */
export async function tasksCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const [, verb = "list", ...words] = given.words;
  const run = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (run === undefined) throw unknownSubcommand("tasks", verb, Object.keys(verbs));
  const { importModule } = launcher;
  const isReading = verb === "list" || verb === "show";
  return useSessions(
    given,
    async ({ runtime }) => run({ given, words, runtime, sessionId: await sessionOf(given, runtime) }),
    // The other verbs work in the session, or on files of this machine.
    { importModule, isLocal: !isReading },
  );
}

export interface TasksCall {
  readonly given: Arguments;
  /** The arguments after the verb. */
  readonly words: readonly string[];
  readonly runtime: Runtime;
  readonly sessionId: string;
}

const verbs: Readonly<Record<string, (call: TasksCall) => Promise<ExitCode>>> = {
  list,
  show,
  resume: async (call) => (await import("./tasks-resume.ts")).resumeTask(call),
  stop,
  merge: worktree,
  diff: worktree,
  discard: worktree,
};

export async function sessionOf(given: Arguments, { store }: Runtime): Promise<string> {
  const wanted = given.text("session");
  return wanted === undefined ? sessionHere(store, workingDirectory(process.cwd())) : findSession(store, wanted);
}

async function list({ given, words, runtime, sessionId }: TasksCall): Promise<ExitCode> {
  if (words.length > 0) throw usage(`troupe tasks list takes no arguments, but got "${words.join(" ")}".`);
  const { tasks, heldBy } = await readTasks(runtime.store, sessionId);
  const runs = given.has("all") ? await sidekickRuns(runtime, sessionId) : [];
  if (wantsJson(given)) {
    const rows = [...tasks.map(({ prompt: _, ...task }) => task), ...runs.map((run) => ({ kind: "sidekick", ...run }))];
    await write(jsonList(rows));
    return exitCodes.done;
  }
  await write(
    tasks.length === 0 ? `No agents in session ${sessionId}.\n` : taskLines(tasks, Date.now(), process.stdout.columns),
  );
  if (runs.length > 0) await write(`\nSidekicks:\n${(await import("./inbox.ts")).runLines(runs)}`);
  if (heldBy) printMessage(`session ${sessionId} is in use by process ${heldBy.pid}`);
  return exitCodes.done;
}

async function sidekickRuns({ store }: Runtime, sessionId: string) {
  const { readSidekicks } = await import("../../runtime/agents/sidekick-runs.ts");
  return (await readSidekicks(store, sessionId)).runs;
}

export function taskLines(tasks: readonly StoredTask[], now: number, width: number | undefined): string {
  const rows = tasks.map((task) => {
    const cells = [
      `${"  ".repeat(Math.min(task.depth, 16) - 1)}${task.id}`,
      task.agentType,
      stateText(task),
      plural(task.turns, "answer"),
      plural(task.toolCalls, "tool"),
      `${task.tokens.toLocaleString("en-US")} tokens`,
      task.costUsd === null ? "?" : `$${task.costUsd.toFixed(4)}`,
      age(now - task.createdAt),
    ];
    const text = isEnded(task) || task.intent === undefined ? task.description : `${task.description}: ${task.intent}`;
    return { cells: cells.map(sanitiseLine), text: sanitiseLine(text) };
  });
  return listLines(rows, { width, textWidth: MAX_LIST_DESCRIPTION });
}

const MAX_LIST_DESCRIPTION = 80;

const isEnded = ({ status }: StoredTask): boolean => ["completed", "failed", "cancelled"].includes(status);

/** Returns the state, with the reason if the state alone does not imply it. */
function stateText({ status, reason }: StoredTask): string {
  const told = { completed: "finished", failed: "error", cancelled: "stopped" } as const;
  if (reason === undefined || (status in told && told[status as keyof typeof told] === reason)) return status;
  return `${status} (${reason.replace("_", " ")})`;
}

function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

async function show({ given, words, runtime, sessionId }: TasksCall): Promise<ExitCode> {
  const report = await readTask(runtime.store, sessionId, await oneTask({ words, runtime, sessionId, verb: "show" }));
  if (!report) {
    throw new TroupeError("failed", "A rewind has just removed the agent from the session.", {
      hint: "See: troupe tasks list",
    });
  }
  if (wantsJson(given)) await write(`${jsonLine(report, process.stdout)}\n`);
  else await write(sanitise(reportText(report)));
  return exitCodes.done;
}

function reportText({ task, turns, error }: StoredReport): string {
  const facts: [string, string | undefined][] = [
    ["id", task.id],
    ["agent", task.agentType],
    ["state", stateText(task)],
    ["error", error],
    ["for", task.description],
    ["parent", task.parentId ?? "the main agent"],
    ["model", task.model],
    ["used", `${plural(task.toolCalls, "tool")}, ${task.tokens.toLocaleString("en-US")} tokens`],
    ["intent", task.intent],
    ["worktree", task.worktree],
  ];
  const head = facts.flatMap(([key, value]) => (value === undefined ? [] : [`${key.padEnd(9)} ${value}`]));
  const said = turns.map(({ number, message, response, reason }) => {
    const ending = reason === "finished" ? "" : ` (${reason.replace("_", " ")})`;
    return `\n# Answer ${number}${ending}\n\n> ${message.replaceAll("\n", "\n> ")}\n\n${response}`;
  });
  const asked = turns.length > 0 ? [] : [`\n> ${task.prompt.replaceAll("\n", "\n> ")}`];
  return `${[...head, ...asked, ...said].join("\n").trimEnd()}\n`;
}

async function stop({ given, words, runtime, sessionId }: TasksCall): Promise<ExitCode> {
  if (given.has("all") && words.length > 0) throw usage("Give ids, or --all, not both.");
  if (!given.has("all") && words.length === 0) throw usage("troupe tasks stop takes ids, or --all.");
  const { tasks } = await readTasks(runtime.store, sessionId);
  const wanted = given.has("all") ? "all" : words.map((word) => findTask(word, tasks).id);
  const stopped = await stopTasks(runtime.store, sessionId, wanted);
  if (stopped.length === 0) await write("Nothing to stop: all of them have ended.\n");
  else await write(`Stopped ${plural(stopped.length, "agent")}: ${sanitiseLine(stopped.join(", "))}\n`);
  return exitCodes.done;
}

/** Merges, shows or discards the work of an agent in its own worktree. */
async function worktree({ given, words, runtime, sessionId }: TasksCall): Promise<ExitCode> {
  const [, verb = ""] = given.words;
  const taskId = await oneTask({ words, runtime, sessionId, verb });
  const { directory, tasks, heldBy } = await readTasks(runtime.store, sessionId);
  const task = tasks.find(({ id }) => id === taskId);
  if (heldBy && verb !== "diff" && (task?.status === "running" || task?.status === "queued")) {
    throw new TroupeError("failed", `Agent ${taskId} is running in process ${heldBy.pid}.`, {
      hint: "Wait until it has ended, or stop it there.",
    });
  }
  const { diffTask, discardTask, mergeTask } = await import("./worktree.ts");
  const printed: Promise<void>[] = [];
  const print = (text: string): void => void printed.push(write(text));
  const call = { folder: join(directory, "worktrees"), taskId, print, stateRoot: stateRoot(process.env) };
  // A command of an agent may merge only files that the agent may write.
  const isAgent = process.env.TROUPE_SHELL !== undefined;
  const consent = isAgent ? {} : { force: given.has("force"), ...terminalAsk() };
  try {
    if (verb === "diff") return await diffTask(call);
    if (verb === "discard") return await discardTask({ ...call, force: given.has("force") });
    const as = given.choice("as", ["files", "squash", "merge"]);
    return await mergeTask({ ...call, ...consent, ...defined({ as, description: task?.description }) });
  } finally {
    await Promise.all(printed);
  }
}

/** Returns the id of the one agent that the user named. */
export async function oneTask(what: {
  words: readonly string[];
  runtime: Runtime;
  sessionId: string;
  verb: string;
}): Promise<string> {
  const { words, runtime, sessionId, verb } = what;
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw usage(`troupe tasks ${verb} takes the id of one agent.`);
  return findTask(word, (await readTasks(runtime.store, sessionId)).tasks).id;
}

function findTask(word: string, tasks: readonly StoredTask[]): StoredTask {
  const found = tasks.find(({ id }) => id === word) ?? tasks.find(({ id }) => id.toLowerCase() === word.toLowerCase());
  if (found) return found;
  const close = nearest(
    word,
    tasks.map(({ id }) => id),
  );
  throw new TroupeError("usage", `There is no agent "${clip(word, 80)}" in this session.`, {
    hint: close === undefined ? "See: troupe tasks list" : `Did you mean ${close}?`,
  });
}
