import { homedir } from "node:os";
import { resolve } from "node:path";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import { clip, plural, sanitise, sanitiseLine } from "../../lib/text.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { useSessions } from "../cluster/stored-sessions.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { timeOf } from "../since.ts";

type Found = Awaited<ReturnType<Runtime["past"]["search"]>>[number];
type Query = Parameters<Runtime["past"]["search"]>[0];

/** `troupe search`: finds text in sessions, and shows how to resume them. */
export function searchCommand(given: Arguments, words: readonly string[]): Promise<ExitCode> {
  return useSessions(given, ({ runtime }) => searchIn(runtime, given, words));
}

export async function searchIn(runtime: Runtime, given: Arguments, words: readonly string[]): Promise<ExitCode> {
  if (words.length === 0) throw usage("troupe search needs words to look for.");
  const query = queryOf(given, words.join(" "));
  const found = await runtime.past.search(query);
  if (wantsJson(given)) await write(jsonList(bySession(found)));
  else await write(sanitise(foundText(bySession(found), query)));
  return exitCodes.done;
}

/** `troupe sessions reindex`: rebuilds the index from the logs. */
export async function reindexCommand(runtime: Runtime): Promise<ExitCode> {
  const { changed, failed } = await runtime.past.reindex();
  for (const { sessionId, message } of failed.slice(0, 20))
    printMessage(`session ${sessionId} is left out: ${message}`);
  const leftOut = failed.length === 0 ? "" : `, ${failed.length} of them could not be read`;
  await write(`Read ${plural(changed, "session")}${leftOut}. The index is in ${runtime.past.path}.\n`);
  return failed.length === 0 ? exitCodes.done : exitCodes.failed;
}

function queryOf(given: Arguments, words: string): Query {
  const [repo, cwd, since] = [given.text("repo"), given.text("cwd"), given.text("since")];
  const limit = given.amount("limit", "whole");
  return {
    words,
    ...(repo !== undefined && (repo === "." ? thisRepository() : { repository: repo })),
    ...(cwd !== undefined && { cwd: resolve(cwd.replace(/^~(?=\/|$)/, homedir())) }),
    ...(since !== undefined && { since: timeOf(since) }),
    ...defined({ limit }),
  };
}

/** Selects the repository by its GitHub name, or else the sessions of its folder. */
function thisRepository(): Pick<Query, "repository" | "cwd"> {
  const { repository, gitRoot, cwd } = workingDirectory(process.cwd());
  return repository === undefined ? { cwd: gitRoot ?? cwd } : { repository };
}

/** A session with its best matches. */
type FoundSession = Omit<Found, keyof Match> & { readonly places: readonly Match[] };
type Match = Pick<Found, "source" | "number" | "snippet" | "timestamp">;

function bySession(found: readonly Found[]): FoundSession[] {
  const sessions = new Map<string, FoundSession & { readonly places: Match[] }>();
  for (const { source, number, snippet, timestamp, ...session } of found) {
    const known = sessions.get(session.sessionId) ?? { ...session, places: [] };
    known.places.push({ source, number, snippet, timestamp });
    sessions.set(session.sessionId, known);
  }
  return [...sessions.values()];
}

function foundText(found: readonly FoundSession[], { words, limit = 20 }: Query): string {
  const [first] = found;
  if (first === undefined) return `No matches for: ${words}\n`;
  const rows = found.map((one) => {
    const where = one.repository === undefined ? one.cwd : `${one.repository}${one.branch ? `@${one.branch}` : ""}`;
    const time = one.places[0]?.timestamp.slice(0, 16).replace("T", " ") ?? "";
    const head = [one.sessionId, time, where].map((cell) => sanitiseLine(cell)).join("  ");
    const title = one.title === undefined ? [] : [`  ${clip(sanitiseLine(one.title), 100)}`];
    return [head, ...title, ...one.places.map((match) => `  ${matchText(match)}: ${oneLine(match.snippet)}`)].join(
      "\n",
    );
  });
  const more = found.length === limit ? `The best ${limit}; --limit shows more. ` : "";
  const resume = `troupe -p "<prompt>" --resume ${first.sessionId}`;
  return `${rows.join("\n\n")}\n\n${more}To resume a session: ${resume}\n`;
}

const matchText = ({ source, number }: Match): string =>
  source === "turn" ? `message ${number}` : source === "file" ? `file, message ${number}` : `checkpoint ${number}`;

const oneLine = (text: string): string => clip(text.trim().replace(/\s+/g, " "), 300);
