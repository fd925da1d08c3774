/**
 * Finds and ends all processes of a command. It follows the process group, the ancestors, and a mark in the
 * environment, because a process can leave any one of them.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setImmediate as breathe, setTimeout as delay } from "node:timers/promises";
import { namesIn } from "./processes.ts";

/** The descriptor on which every shell outside a sandbox holds a folder of its session open. */
export const GUARD_DESCRIPTOR = 198;

/** The environment variable that marks the processes of a shell. */
export const MARK_NAME = "TROUPE_SHELL";

export interface ProcessFamily {
  /** The first process, which leads its own group. */
  readonly pid: number;
  /** The value of the mark. */
  readonly mark: string;
  /** Start time of the first process in system ticks; older processes cannot belong to it. 0 when unknown. */
  readonly since: number;
}

export function familyOf(pid: number, mark: string): ProcessFamily {
  return { pid, mark, since: memberFrom(read(`/proc/${pid}/stat`))?.since ?? 0 };
}

const TERM_GRACE_MS = 2000;
const KILL_GRACE_MS = 1000;
const POLL_MS = 20;
const MAX_POLL_MS = 200;
/** Number of processes examined before yielding to the event loop. */
const LOOKS_AT_ONCE = 100;
/** Exits with its first child or its parent, and would kill the command before it can clean up. */
const LAUNCHER = "bwrap";

/** Sends SIGTERM to all, and SIGKILL after two seconds. Resolves when they are gone, or after three seconds. */
export async function endFamily(family: ProcessFamily): Promise<void> {
  const members = await membersOf(family);
  if (members.length === 0) return;
  for (const { pid, name } of members) if (name !== LAUNCHER) signal(pid, "SIGTERM");
  if (await waitUntilGone(family, TERM_GRACE_MS)) return;
  await killFamily(family);
}

const leftovers = new Map<ProcessFamily, () => void>();
const SEARCH_DELAY_MS = 100;

/**
 * Ends leftover processes of a command that has ended. The search reads the table of all processes. So it is delayed
 * briefly, and commands that end in succession share it.
 */
export function endLeftovers(family: ProcessFamily): Promise<void> {
  if (signal(-family.pid, 0)) return endFamily(family);
  if (leftovers.size === 0) setTimeout(() => void searchLeftovers(), SEARCH_DELAY_MS);
  return new Promise((resolve) => leftovers.set(family, resolve));
}

/** Runs the search that `endLeftovers` delays. */
export async function searchLeftovers(): Promise<void> {
  const waiting = [...leftovers];
  leftovers.clear();
  if (waiting.length === 0) return;
  const since = Math.min(...waiting.map(([family]) => family.since));
  const table = await processTable(since);
  for (const [family, done] of waiting) {
    const isOver = membersIn(table, family).length === 0;
    void (isOver ? Promise.resolve() : endFamily(family)).then(done);
  }
}

/** Sends SIGKILL immediately, and again to processes that were started meanwhile. */
export async function killFamily(family: ProcessFamily): Promise<void> {
  signal(-family.pid, "SIGKILL");
  const end = performance.now() + KILL_GRACE_MS;
  while (performance.now() < end) {
    const members = await membersOf(family);
    if (members.length === 0) return;
    for (const { pid } of members) signal(pid, "SIGKILL");
    await delay(POLL_MS);
  }
}

/**
 * Kills every process that holds this folder open on the guard descriptor. Commands outside a sandbox inherit it, so
 * this finds a process that left its group and its environment. Linux only.
 */
export async function killHolders(folder: string): Promise<void> {
  const end = performance.now() + KILL_GRACE_MS;
  while (performance.now() < end) {
    const holders = namesIn("/proc").filter((name) => holdsOpen(name, folder) && name !== String(process.pid));
    if (holders.length === 0) return;
    for (const pid of holders) signal(Number(pid), "SIGKILL");
    await delay(POLL_MS);
  }
}

function holdsOpen(pid: string, folder: string): boolean {
  try {
    return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/fd/${GUARD_DESCRIPTOR}`) === folder;
  } catch {
    return false;
  }
}

/** Sends a signal to the processes of the command, not to the sandbox launcher. */
export async function signalFamily(family: ProcessFamily, name: NodeJS.Signals): Promise<void> {
  for (const member of await membersOf(family)) if (member.name !== LAUNCHER) signal(member.pid, name);
}

async function waitUntilGone(family: ProcessFamily, withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  for (let pause = POLL_MS; performance.now() < end; pause = Math.min(pause * 2, MAX_POLL_MS)) {
    await delay(pause);
    if ((await membersOf(family)).length === 0) return true;
  }
  return false;
}

interface Member {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly name: string;
  readonly since: number;
}

export async function membersOf(family: ProcessFamily): Promise<Member[]> {
  return membersIn(await processTable(family.since), family);
}

/** Returns all processes that started at this time or later. */
const processTable = (since: number): Promise<Member[]> =>
  process.platform === "linux" ? procTable(since) : psTable();

function membersIn(all: readonly Member[], family: ProcessFamily): Member[] {
  const table = all.filter((member) => member.since >= family.since);
  const found = new Set(table.filter(({ pid, group }) => pid === family.pid || group === family.pid));
  for (const member of table) if (isMarked(member, family)) found.add(member);
  for (let grown = true; grown; ) {
    const pids = new Set([...found].map(({ pid }) => pid));
    const children = table.filter((entry) => pids.has(entry.parent) && !found.has(entry));
    for (const child of children) found.add(child);
    grown = children.length > 0;
  }
  return [...found].filter(({ pid }) => pid !== process.pid && pid > 1);
}

async function procTable(since: number): Promise<Member[]> {
  const table: Member[] = [];
  const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  for (const [index, name] of names.entries()) {
    const member = memberFrom(read(`/proc/${name}/stat`));
    if (member !== undefined && member.since >= since) table.push(member);
    if (index % LOOKS_AT_ONCE === LOOKS_AT_ONCE - 1) await breathe();
  }
  return table;
}

/**
 * Parses "pid (name) state ppid pgrp …"; the name may contain spaces and brackets. Returns undefined for a zombie,
 * which has already ended.
 */
function memberFrom(stat: string): Member | undefined {
  const close = stat.lastIndexOf(")");
  if (close < 0) return undefined;
  const fields = stat.slice(close + 2).split(" ");
  const [state, parent, group] = fields;
  if (state === "Z" || state === "X") return undefined;
  return {
    pid: Number.parseInt(stat, 10),
    parent: Number(parent),
    group: Number(group),
    name: stat.slice(stat.indexOf("(") + 1, close),
    since: Number(fields[19]),
  };
}

const isMarked = ({ pid }: Member, { mark }: ProcessFamily): boolean => hasMark(pid, mark);

/** Returns whether the process has this mark in its environment. Linux only; elsewhere use `provesMark`. */
export function hasMark(pid: number, mark: string): boolean {
  if (process.platform !== "linux") return false;
  const entry = `${MARK_NAME}=${mark}\0`;
  const environment = read(`/proc/${pid}/environ`);
  return environment.startsWith(entry) || environment.includes(`\0${entry}`);
}

/** Like `hasMark`, on every system. Returns false when the environment cannot be read. */
export async function provesMark(pid: number, mark: string): Promise<boolean> {
  if (process.platform === "linux") return hasMark(pid, mark);
  const { execFile } = await import("node:child_process");
  const text = await new Promise<string>((resolve) => {
    execFile("ps", ["-Ewwo", "command=", "-p", String(pid)], { timeout: 2000 }, (_, output) => resolve(output ?? ""));
  });
  return ` ${text.trim()} `.includes(` ${MARK_NAME}=${mark} `);
}

/** Reads a file of /proc synchronously, which needs no disk. Empty for a process that has ended or is not ours. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

async function psTable(): Promise<Member[]> {
  const { execFile } = await import("node:child_process");
  const text = await new Promise<string>((resolve) => {
    execFile("ps", ["-axo", "pid=,ppid=,pgid=,stat=,comm="], { timeout: 2000 }, (_, output) => resolve(output ?? ""));
  });
  return text.split("\n").flatMap((line) => {
    const [, pid, parent, group, state = "", name = ""] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    if (pid === undefined || state.startsWith("Z")) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), name, since: 0 }];
  });
}

/** Returns false when the process no longer exists. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
