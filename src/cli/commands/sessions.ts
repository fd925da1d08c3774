import { createReadStream } from "node:fs";
import { workingDirectory } from "../../context/working-directory.ts";
import { clip, plural, sanitise, sanitiseLine } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { findSession, isInDirectory } from "../../runtime/sessions/select-session.ts";
import { isSidekickId } from "../../session/agents/sidekick-id.ts";
import { isCompaction } from "../../session/compaction/condense.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { type StoredSessions, useSessions } from "../cluster/stored-sessions.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { listLines } from "../output/list-lines.ts";
import { jsonLine, jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { pageFolder } from "../page-folder.ts";

type SessionSummary = Awaited<ReturnType<Runtime["store"]["list"]>>[number];

/** `troupe sessions`: lists, shows, exports and deletes stored sessions. */
export function sessionsCommand(given: Arguments): Promise<ExitCode> {
  return useSessions(given, (stored) => runVerb(given, stored, given.words.slice(1)));
}

/** `troupe export`: the same as `troupe sessions export`. */
export function exportCommand(given: Arguments): Promise<ExitCode> {
  return useSessions(given, (stored) => runVerb(given, stored, ["export", ...given.words.slice(1)]));
}

async function runVerb(
  given: Arguments,
  { runtime, remote }: StoredSessions,
  [verb = "list", ...wanted]: readonly string[],
): Promise<ExitCode> {
  const one = async (): Promise<string> => {
    if (wanted.length !== 1 || !wanted[0]) throw usage(`troupe sessions ${verb} needs one id or name.`);
    return findSession(runtime.store, wanted[0]);
  };
  switch (verb) {
    case "list":
      await write(await listText(runtime, given));
      return exitCodes.done;
    case "show":
      await showSession(runtime, await one(), { all: given.has("all") });
      return exitCodes.done;
    case "search":
      return (await import("./search.ts")).searchIn(runtime, given, wanted);
    case "reindex":
      return (await import("./search.ts")).reindexCommand(runtime);
    case "import":
      return importLog(runtime, given, wanted);
    case "export":
      if (given.has("exact")) return exportExact(runtime, await one());
      return given.has("html") ? exportPage(runtime, await one()) : exportLog(runtime, await one());
    case "delete": {
      const sessionId = await one();
      if (remote) await removeRemote(runtime, remote, sessionId);
      else {
        const { deleteSession } = await import("./session-delete.ts");
        await deleteSession({ runtime, sessionId, force: given.has("force") });
      }
      await write(`Deleted session ${sessionId}.\n`);
      return exitCodes.done;
    }
    default:
      throw unknownSubcommand("sessions", verb, ["list", "show", "search", "reindex", "export", "import", "delete"]);
  }
}

/** Its worktrees are on the machines of workers. */
async function removeRemote({ past }: Runtime, remote: RemoteSessions, sessionId: string): Promise<void> {
  await remote.remove(sessionId);
  await past.remove(sessionId);
}

async function chosenSessions({ store }: Runtime, given: Arguments): Promise<readonly SessionSummary[]> {
  const here = given.has("here") ? workingDirectory(process.cwd()) : undefined;
  const all = await store.list();
  const own = here === undefined ? all : all.filter((summary) => isInDirectory(summary, here));
  return own.slice(0, given.amount("limit", "whole"));
}

async function listText(runtime: Runtime, given: Arguments): Promise<string> {
  const summaries = await chosenSessions(runtime, given);
  if (wantsJson(given)) return jsonList(summaries);
  if (summaries.length === 0 && given.has("here")) return "No session has worked in this repository or folder.\n";
  if (summaries.length === 0) return 'No sessions yet. Start one with: troupe -p "<prompt>"\n';
  const rows = summaries.map(({ sessionId, updatedAt, turns, name, title = "", cwd, detachedFrom }) => ({
    cells: [sessionId, updatedAt.slice(0, 16).replace("T", " "), plural(turns, "turn")].map(sanitiseLine),
    text: sanitiseLine(detachedFrom ? `(consolidation of ${detachedFrom})` : name ? `[${name}] ${title}` : title),
    end: sanitiseLine(cwd),
  }));
  return listLines(rows, { width: process.stdout.columns, textWidth: 60 });
}

/** Text is written in pieces of about this size. */
const SHOWN_CHARACTERS = 64 * 1024;

/** Shows a session. A very long one is shown from its last compaction on, unless `all` is set. */
async function showSession({ store }: Runtime, sessionId: string, { all }: { all: boolean }): Promise<void> {
  const recent = all ? undefined : await store.recent(sessionId, isMainCompaction);
  if (!recent) return show(store.events(sessionId));
  const [first, ...since] = recent.events;
  const summary = first?.type === "session.compaction_complete" ? first.data.summaryContent : undefined;
  const left = `# ${recent.before.toLocaleString("en")} earlier events: troupe sessions show ${sessionId} --all`;
  await write(sanitise([`# Session ${sessionId}`, left, summary].filter(Boolean).join("\n\n")));
  await write("\n\n");
  await show(since);
}

const isMainCompaction = (event: SessionEvent): boolean => event.agentId === undefined && isCompaction(event);

/** Writes the conversation in readable form. Its length is not limited. */
async function show(events: Iterable<SessionEvent> | AsyncIterable<SessionEvent>): Promise<void> {
  let text = "";
  let isFirst = true;
  for await (const event of events) {
    for (const part of isSidekickId(event.agentId) ? [] : eventLines(event)) {
      text += `${isFirst ? "" : "\n"}${part}\n`;
      isFirst = false;
    }
    if (text.length < SHOWN_CHARACTERS) continue;
    await write(sanitise(text));
    text = "";
  }
  await write(sanitise(text));
}

function eventLines(event: SessionEvent): string[] {
  switch (event.type) {
    case "session.start":
      return [`# Session ${event.data.sessionId}, ${event.data.startTime}, ${event.data.context?.cwd ?? ""}`];
    case "session.resume":
      return [`# Resumed ${event.data.resumeTime}`];
    case "user.message":
      return [`> ${event.data.content.replaceAll("\n", "\n> ")}`];
    case "assistant.message": {
      const calls = (event.data.toolRequests ?? []).map(
        ({ name, arguments: given }) => `  · ${name} ${clip(JSON.stringify(given ?? {}), 160)}`,
      );
      return [event.data.content, ...calls].filter(Boolean);
    }
    case "tool.execution_complete":
      return event.data.success ? [] : [`  ! ${clip(event.data.error?.message ?? "failed", 200)}`];
    case "session.error":
      return [`! ${event.data.message}`];
    case "troupe.limit_reached":
      return [`! ${event.data.message}`];
    case "abort":
      return ["! interrupted"];
    case "troupe.log_damage":
      return event.data.damage.map(({ line, message }) => `! damaged log, line ${line}: ${message}`);
    default:
      return [];
  }
}

async function exportPage({ store }: Runtime, sessionId: string): Promise<ExitCode> {
  const { htmlOf } = await import("../../web/export-html.ts");
  const summary = (await store.list()).find((one) => one.sessionId === sessionId);
  const title = sanitiseLine(summary?.name ?? summary?.title ?? sessionId);
  for await (const piece of htmlOf({
    title,
    events: store.events(sessionId),
    assets: pageFolder(),
    environment: process.env,
  })) {
    await write(piece);
  }
  return exitCodes.done;
}

async function exportExact({ store }: Runtime, sessionId: string): Promise<ExitCode> {
  for await (const line of store.exact?.read(sessionId) ?? []) await write(`${line}\n`);
  return exitCodes.done;
}

async function importLog({ store }: Runtime, given: Arguments, wanted: readonly string[]): Promise<ExitCode> {
  const [path] = wanted;
  if (wanted.length !== 1 || path === undefined) throw usage("troupe sessions import needs one file.");
  if (!store.exact) throw usage("Sessions cannot be imported into this store.");
  const sessionId = given.text("session-id") ?? crypto.randomUUID();
  const { splitLines } = await import("../../runtime/sessions/split-lines.ts");
  await store.exact.add(sessionId, splitLines(createReadStream(path)));
  await write(`${sessionId}\n`);
  return exitCodes.done;
}

async function exportLog(runtime: Runtime, sessionId: string): Promise<ExitCode> {
  const damaged: string[] = [];
  const onDamage = (damage: readonly { line: number; message: string }[]): void => {
    for (const { line, message } of damage) damaged.push(`line ${line} is damaged and left out: ${message}`);
  };
  let lines = "";
  for await (const event of runtime.store.events(sessionId, onDamage)) {
    lines += `${jsonLine(event, process.stdout)}\n`;
    if (lines.length < SHOWN_CHARACTERS) continue;
    await write(lines);
    lines = "";
  }
  await write(lines);
  for (const line of damaged) printMessage(line);
  return exitCodes.done;
}
