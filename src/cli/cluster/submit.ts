/** `troupe submit`: hands a prompt to the workers of a database. */

import { sanitise } from "../../lib/text.ts";
import { type Cluster, openCluster, submitWork } from "../../runtime/cluster/cluster.ts";
import { findWork, type WorkOutcome, type WorkRow } from "../../runtime/cluster/work.ts";
import { type Arguments, parse, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { options } from "../options.ts";
import { jsonLine, write } from "../output/output.ts";
import { say } from "../output/say.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { databaseUrl } from "./database-url.ts";

const POLL_MS = 250;
const GUARDED: readonly string[] = ["Permissions", "Extensions", "MCP", "Memory"];

export async function submitCommand(given: Arguments): Promise<ExitCode> {
  const prompt = given.text("prompt");
  if (prompt === undefined || prompt.trim() === "") throw usage('Give a prompt: troupe submit -p "<prompt>"');
  const [repository, ref] = [given.text("repo"), given.text("ref")];
  const onLoss = given.choice("on-loss", ["continue", "stop"]) ?? "continue";
  const sessionId = given.text("session-id") ?? crypto.randomUUID();
  const id = crypto.randomUUID();
  const [tenant, pool] = [given.text("tenant"), given.text("pool")];
  const refused = given.flags.find((name) => REFUSED.includes(name));
  if (refused !== undefined) {
    throw usage(`--${refused} is decided by the workers.`, `Start them with it: troupe worker --${refused} …`);
  }
  const flags = sessionFlags(process.argv.slice(2), given);
  sessionRequest(parse(flags), "json");
  const cluster = await openCluster({ url: databaseUrl(given) });
  try {
    await submitWork(cluster, {
      ...{ id, sessionId, onLoss },
      ...(tenant !== undefined && { tenant }),
      ...(pool !== undefined && { pool }),
      request: { prompt, flags, ...(repository !== undefined && { repository }), ...(ref !== undefined && { ref }) },
    });
    if (!given.has("wait")) {
      await write(given.has("json") ? `${jsonLine({ workId: id, sessionId }, process.stdout)}\n` : `${sessionId}\n`);
      return exitCodes.done;
    }
    return await report(given, await waitFor(cluster, id), { id, sessionId });
  } finally {
    await cluster.close();
  }
}

/** Flags that would allow something on the workers' machines. */
const REFUSED: readonly string[] = options
  .filter(({ name, group }) => GUARDED.includes(group) && !/^(?:deny|excluded|available|no|disable)-/.test(name))
  .map(({ name }) => name);

/** Flags of `submit` itself, which are not flags of the session. Each takes a value, except the last two. */
const OWN_VALUES = ["prompt", "p", "database", "pool", "repo", "ref", "tenant", "on-loss", "session-id"];
const OWN_SWITCHES = ["wait", "json"];

/** Returns the flags for the session, without the word `submit` and its own flags. */
function sessionFlags(argv: readonly string[], given: Arguments): string[] {
  const flags: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    const name = /^--?([a-z-]+)/.exec(word)?.[1] ?? "";
    if (word.startsWith("-") && OWN_VALUES.includes(name)) {
      if (!word.includes("=")) index++;
      continue;
    }
    if (OWN_SWITCHES.includes(name) && word.startsWith("-")) continue;
    if (!given.words.includes(word)) flags.push(word);
  }
  return flags;
}

async function waitFor({ database }: Cluster, id: string): Promise<WorkRow> {
  for (;;) {
    const row = await findWork(database, id);
    if (row && row.outcome !== null) return row;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function report(
  given: Arguments,
  { outcome }: WorkRow,
  ids: { readonly id: string; readonly sessionId: string },
): Promise<ExitCode> {
  if (given.has("json"))
    await write(`${jsonLine({ workId: ids.id, sessionId: ids.sessionId, outcome }, process.stdout)}\n`);
  else if (outcome?.kind === "done")
    await write(`${process.stdout.isTTY ? sanitise(outcome.answer) : outcome.answer}\n`);
  if (outcome?.kind === "done") return exitCodes.done;
  say(`session ${ids.sessionId}: ${describe(outcome)}`);
  return exitCodes.failed;
}

function describe(outcome: WorkOutcome | null): string {
  if (outcome === null) return "no outcome yet";
  if (outcome.kind === "done") return "done";
  if (outcome.kind === "lost") return "the worker was lost, and the work was not continued (--on-loss stop)";
  return `${outcome.kind}: ${outcome.message}`;
}
