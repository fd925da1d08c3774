import { loadSettings } from "../../catalog/settings/settings.ts";
import { readTrust } from "../../catalog/trust.ts";
import { acceptChange, daysFrom, editChange, type FactEdit, retractChange } from "../../context/memory/changes.ts";
import { requireContent } from "../../context/memory/content.ts";
import { type HistoryEntry, historyOf, lastUndoable } from "../../context/memory/fold.ts";
import type { MemoryJournal } from "../../context/memory/journal.ts";
import type { LocalMemory } from "../../context/memory/local.ts";
import { type Fact, type MemoryPorts, type MemoryScope, memoryScopes } from "../../context/memory/memory.ts";
import { openLocalMemory, parseMemorySettings } from "../../context/memory/open.ts";
import { factsInRepository, REPOSITORY_FILE } from "../../context/memory/repository-file.ts";
import { tracesOf } from "../../context/memory/traces.ts";
import { byAge, exportFacts, importFacts } from "../../context/memory/transfer.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { createRedactor } from "../../lib/redact/redact.ts";
import { secretValuesOf } from "../../lib/redact/redact-values.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { plural, sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { flagsFrom } from "../../protocol/flags.ts";
import { stateRoot } from "../../runtime/home.ts";
import { isMemoryOn } from "../../runtime/knowledge/memory-gate.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { terminalAsk } from "../ask.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { factDetails, factList } from "../output/memory-lines.ts";
import { jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";

export interface MemoryContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stateRoot: string;
  /** Whether the user trusts this folder: then all clones of a repository share their facts. */
  readonly isTrusted: boolean;
  /** True if sessions of prompt mode get no remembered facts. */
  readonly isOff?: boolean;
  /** The service that stores the facts instead, if the settings name one. */
  readonly service?: string;
  readonly ports: MemoryPorts;
  print(text: string): Promise<void>;
  say(text: string): void;
  /** Undefined if no user can be asked. */
  readonly ask?: (question: string) => Promise<boolean>;
}

const context = (): MemoryContext => {
  const environment = process.env;
  const home = stateRoot(environment);
  const cwd = process.cwd();
  const { gitRoot } = workingDirectory(cwd);
  const { effective } = loadSettings({ stateRoot: home, cwd, isTrusted: () => false });
  const { trustedFolders = [], memory, enabledFeatureFlags = {} } = effective;
  const { flags } = flagsFrom({ settings: enabledFeatureFlags, environment });
  const { store, url } = parseMemorySettings(memory);
  return {
    environment,
    cwd,
    stateRoot: home,
    isTrusted: readTrust(home).of(gitRoot ?? cwd, { trustedFolders }).state !== "none",
    isOff: !isMemoryOn({ settings: memory, environment, flags }),
    ...(store === "service" && url !== undefined && { service: url }),
    ports: { disk: nodeDisk, stamp: systemStamp, redactor: createRedactor({ values: secretValuesOf(environment) }) },
    print: write,
    say: printMessage,
    ...terminalAsk(),
  };
};

/** `troupe memory`: lets the user read and change the facts that are stored between sessions. */
export async function memoryCommand(given: Arguments, around: MemoryContext = context()): Promise<ExitCode> {
  const [, verb = "list", ...words] = given.words;
  const run = Object.hasOwn(verbs, verb) ? verbs[verb as keyof typeof verbs] : undefined;
  if (run === undefined) throw unknownSubcommand("memory", verb, Object.keys(verbs));
  if (deciding.has(verb)) refuseToAgents(around.environment);
  const scope = given.choice("scope", memoryScopes);
  const memory = openLocalMemory(around);
  // A session may have had the trust that this command lacks. The user still sees the facts that it stored.
  const all = openLocalMemory({ ...around, isTrusted: true }).journals;
  const journals = all.filter((journal) => scope === undefined || journal.scope === scope);
  await run({ given, words, scope, memory, journals, around });
  return exitCodes.done;
}

interface Request {
  readonly given: Arguments;
  readonly words: readonly string[];
  readonly scope: MemoryScope | undefined;
  readonly memory: LocalMemory;
  /** The journals of the requested scope. */
  readonly journals: readonly MemoryJournal[];
  readonly around: MemoryContext;
}

const verbs = { list, show, add, edit, accept, remove, export: exportAll, import: importFile, undo };

/** Verbs that change which facts count. Agents may not run them through their shell. */
const deciding = new Set(["add", "edit", "accept", "remove", "import", "undo"]);
const SHELL_MARK = "TROUPE_SHELL";

function refuseToAgents(environment: MemoryContext["environment"]): void {
  if (environment[SHELL_MARK] === undefined) return;
  throw new TroupeError("failed", "A command of an agent cannot change the memory.", {
    hint: "Run it in a terminal of your own.",
  });
}

async function list({ given, journals, around }: Request): Promise<void> {
  if (around.service) around.say(`sessions keep their facts at ${around.service}; what follows is kept here`);
  const facts = journals.flatMap((journal) => readFacts(journal, around)).sort(byAge);
  const shown = facts.filter(({ status }) => given.has("all") || status !== "retracted");
  await around.print(wantsJson(given) ? jsonList(shown) : factList(shown, around.ports.stamp.now()));
}

async function show({ given, words, journals, around }: Request): Promise<void> {
  const [id] = requireWords(words, "show <id>", { most: 1 });
  const { journal, fact } = find(journals, id ?? "");
  const history: HistoryEntry[] = historyOf(fact.id, journal.read());
  const { space } = journal;
  const text = wantsJson(given)
    ? `${JSON.stringify({ ...fact, history }, null, 2)}\n`
    : factDetails(fact, history, { label: space.label, now: around.ports.stamp.now() });
  await around.print(text);
}

async function add({ given, words, scope = "repository", memory, around }: Request): Promise<void> {
  const fact = requireWords(words, 'add "<fact>"').join(" ");
  const expiresAt = expiry(given, around);
  const supersedes = given.text("supersedes");
  const sameScope = memory.journals.filter((journal) => journal.scope === scope);
  const former = supersedes === undefined ? undefined : find(sameScope, supersedes).fact.id;
  const { id, outcome } = await memory.store({
    fact,
    subject: given.text("subject") ?? "general",
    citations: given.text("citations") ?? "",
    reason: given.text("reason") ?? "",
    scope,
    author: "person",
    source: { kind: "command" },
    status: "accepted",
    ...(typeof expiresAt === "string" && { expiresAt }),
    ...defined({ supersedes: former }),
  });
  await around.print(outcome === "known" ? `This is remembered already: ${id}\n` : `Remembered: ${id}\n`);
  sayIfOff(around);
}

function sayIfOff({ isOff, say }: MemoryContext): void {
  if (!isOff) return;
  say('memory is off with -p: use --enable-memory, or set "memory": { "enabled": true } in settings.json');
}

async function edit({ given, words, journals, around }: Request): Promise<void> {
  const [id = "", ...rest] = requireWords(words, 'edit <id> ["<fact>"]');
  const { journal, fact } = find(journals, id);
  const other = {
    ...(rest.length > 0 && { fact: rest.join(" ") }),
    ...Object.fromEntries(
      (["subject", "citations", "reason"] as const).flatMap((name) => {
        const text = given.text(name);
        return text === undefined ? [] : [[name, text]];
      }),
    ),
  };
  const expiresAt = expiry(given, around);
  if (Object.keys(other).length === 0 && expiresAt === undefined) throw usage("troupe memory edit: nothing to change.");
  const content = requireContent({ ...fact, ...other }, around.ports.redactor);
  const change: FactEdit = { ...content, ...defined({ expiresAt }) };
  await journal.transact({ action: "edit", by: "person" }, (state) => editChange(state, fact.id, change));
  await around.print(`Changed: ${fact.id}\n`);
}

async function accept({ given, words, journals, around }: Request): Promise<void> {
  const isAll = given.has("all");
  const waiting = journals.flatMap((journal) =>
    readFacts(journal, around).flatMap((fact) => (fact.status === "proposed" ? [{ journal, fact }] : [])),
  );
  const wanted = isAll ? waiting : requireWords(words, "accept <id> …").map((id) => find(journals, id));
  if (wanted.length === 0) return around.print("Nothing is proposed.\n");
  if (isAll) {
    await around.print(
      factList(
        wanted.map(({ fact }) => fact),
        around.ports.stamp.now(),
      ),
    );
    await requireYes(given, around, `Accept ${plural(wanted.length, "fact")}?`);
  }
  for (const journal of new Set(wanted.map((one) => one.journal))) {
    const ids = wanted.filter((one) => one.journal === journal).map(({ fact }) => fact.id);
    await journal.transact({ action: "accept", by: "person" }, (state) => acceptChange(state, ids));
  }
  await around.print(`Accepted: ${wanted.map(({ fact }) => fact.id).join(", ")}\n`);
}

async function remove({ given, words, journals, around }: Request): Promise<void> {
  const wanted = requireWords(words, "remove <id> …").map((id) => find(journals, id));
  const ids = wanted.map(({ fact }) => fact.id).join(", ");
  if (given.has("purge")) await requireYes(given, around, `Purge ${ids}? This cannot be undone.`);
  const wordings = new Set(wanted.flatMap(wordingsOf));
  for (const journal of new Set(wanted.map((one) => one.journal))) {
    const own = wanted.filter((one) => one.journal === journal).map(({ fact }) => fact.id);
    if (given.has("purge")) await journal.purge(own);
    else await journal.transact({ action: "remove", by: "person" }, (state) => retractChange(state, own));
  }
  await around.print(
    given.has("purge") ? `Purged: ${ids}\n` : `Removed: ${ids}. It can be undone: troupe memory undo\n`,
  );
  if (given.has("purge")) await sayTraces([...wordings], around);
}

/** Returns all wordings of a fact, including those before it was edited. */
function wordingsOf({ journal, fact }: { journal: MemoryJournal; fact: Fact }): string[] {
  return [fact, ...historyOf(fact.id, journal.read()).flatMap((entry) => entry.fact ?? [])].map((one) => one.fact);
}

/** Names the repository file and the session logs that still contain the text. Logs are never rewritten. */
async function sayTraces(words: readonly string[], { stateRoot, cwd, say }: MemoryContext): Promise<void> {
  const { gitRoot } = workingDirectory(cwd);
  if (gitRoot !== undefined && factsInRepository(gitRoot).some((fact) => words.includes(fact)))
    say(`its words stand in ${REPOSITORY_FILE} too: take the line out there, and out of the history of the repository`);
  const found = await Promise.all(words.map((wording) => tracesOf(wording, stateRoot)));
  const sessions = [...new Set(found.flatMap((traces) => traces.sessions))];
  for (const session of sessions) say(`its words stand in the log of a session too: troupe sessions delete ${session}`);
  if (found.some(({ isComplete }) => !isComplete)) say("there are too many sessions to look through all of them");
}

async function exportAll({ journals, around }: Request): Promise<void> {
  const facts = journals
    .flatMap((journal) => readFacts(journal, around))
    .filter(({ status }) => status !== "retracted");
  const { text, withheld } = exportFacts(facts, around.ports.redactor);
  if (withheld.length > 0) around.say(`left out, because they hold a secret: ${withheld.join(", ")}`);
  await around.print(text);
}

const MAX_IMPORT_BYTES = 4 * 1024 * 1024;

async function importFile({ words, scope = "repository", memory, around }: Request): Promise<void> {
  const [path = ""] = requireWords(words, "import <file>", { most: 1 });
  const file = readSmallFile(path, { maxBytes: MAX_IMPORT_BYTES });
  if (file.kind === "missing") throw new TroupeError("usage", `There is no file ${path}.`);
  if (file.kind === "refused") throw new TroupeError("usage", `${path} ${file.reason}.`);
  const { drafts, refused, notices } = importFacts(file.text, { name: path, scope, redactor: around.ports.redactor });
  const outcomes = await memory.storeAll(drafts, scope);
  const problems = [
    ...refused.map(({ subject, problem }) => `"${subject}" was left out: ${problem}`),
    ...outcomes.flatMap((one) => (one.kind === "refused" ? [`"${one.subject}" was left out: ${one.problem}`] : [])),
  ];
  for (const problem of [...notices, ...problems]) around.say(problem);
  const count = (outcome: string): number =>
    outcomes.filter((one) => one.kind === "stored" && one.outcome === outcome).length;
  await around.print(
    `${plural(count("proposed"), "proposal")} from ${sanitise(path)}, ${count("known")} known before.\n`,
  );
}

async function undo({ words, journals, around }: Request): Promise<void> {
  const [change] = words;
  const candidates = journals.flatMap((journal) => {
    const { transactions } = journal.read();
    const found = change === undefined ? lastUndoable(transactions) : transactions.find(({ id }) => id === change);
    return found ? [{ journal, found }] : [];
  });
  const [latest] = candidates.sort((one, other) => other.found.at.localeCompare(one.found.at));
  if (latest === undefined) throw usage(change === undefined ? "There is nothing to undo." : `No change ${change}.`);
  const undone = await latest.journal.undo("person", latest.found.id);
  const ids = [...undone.facts.map(({ id }) => id), ...(undone.absent ?? [])].join(", ");
  await around.print(`Undone: ${undone.action} of ${ids}, ${undone.at}\n`);
}

function readFacts(journal: MemoryJournal, { say }: Pick<MemoryContext, "say">): Fact[] {
  const { facts, notices } = journal.read();
  for (const notice of notices) say(notice);
  return [...facts.values()];
}

const SHORTEST_PREFIX = 4;

/** Finds a fact by its id, or by an unambiguous prefix of it. */
function find(journals: readonly MemoryJournal[], id: string): { journal: MemoryJournal; fact: Fact } {
  const all = journals.flatMap((journal) => [...journal.read().facts.values()].map((fact) => ({ journal, fact })));
  const exact = all.find(({ fact }) => fact.id === id);
  const close = id.length < SHORTEST_PREFIX ? [] : all.filter(({ fact }) => fact.id.startsWith(id));
  const found = exact ?? (close.length === 1 ? close[0] : undefined);
  if (found) return found;
  const problem = close.length > 1 ? `More than one fact begins with ${id}.` : `There is no fact ${id}.`;
  throw new TroupeError("usage", problem, { hint: "See: troupe memory list" });
}

/** Returns the expiry date, null for `never`, or undefined if the flag is absent. */
function expiry(given: Arguments, { ports }: MemoryContext): string | null | undefined {
  if (given.text("expires") === "never") return null;
  const days = given.amount("expires", "whole");
  return days === undefined ? undefined : daysFrom(ports.stamp.now(), Math.min(days, 36_500));
}

function requireWords(words: readonly string[], form: string, { most = 1000 } = {}): readonly string[] {
  if (words.length > 0 && words.length <= most) return words;
  throw usage(`Usage: troupe memory ${form}`);
}

async function requireYes(given: Arguments, { ask }: MemoryContext, question: string): Promise<void> {
  if (given.has("yes")) return;
  if (ask === undefined) throw usage(`${question} There is no terminal to ask on. To confirm, add --yes.`);
  if (!(await ask(`${question} [y/N] `))) throw new TroupeError("failed", "Nothing was changed.");
}
