import { type Board, type BoardSource, boardSources } from "../../context/board/board.ts";
import { defined } from "../../lib/defined.ts";
import { nearest, plural } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type BoardAdministration, openBoardAdministration } from "../../runtime/knowledge/board-admin.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { allBoards, boardDetails, boardList, changeList, changeText } from "../output/board-lines.ts";
import { jsonLine, jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { boardConsolidate } from "./board-consolidate.ts";

/** `troupe board`: lets the user read and change the context board. */
export async function boardCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const [, verb = "list", ...words] = given.words;
  const run = Object.hasOwn(verbs, verb) ? verbs[verb as keyof typeof verbs] : undefined;
  if (run === undefined) throw unknownSubcommand("board", verb, Object.keys(verbs));
  if (deciding.has(verb)) refuseToAgents();
  const administration = openBoardAdministration({
    cwd: process.cwd(),
    environment: process.env,
    trustFolder: given.has("trust-folder"),
    key: keyOf(given),
    onNotice: printMessage,
  });
  try {
    return (await run({ given, words, launcher, ...administration })) ?? exitCodes.done;
  } finally {
    await administration.close();
  }
}

interface Request extends BoardAdministration {
  readonly given: Arguments;
  readonly words: readonly string[];
  readonly launcher: Launcher;
}

const verbs: Record<string, (request: Request) => Promise<ExitCode | undefined>> = {
  list,
  show,
  add,
  prune,
  changes,
  restore,
  consolidate: ({ given, words, launcher, board }) => boardConsolidate({ given, words, launcher, board }),
};

const PERSON = "person";

/** Verbs that change a board. Agents may not run them through their shell. */
const deciding = new Set(["add", "prune", "restore", "consolidate"]);

function refuseToAgents(): void {
  if (process.env.TROUPE_SHELL === undefined) return;
  throw new TroupeError("failed", "A command of an agent cannot change the board.", {
    hint: "Run it in a terminal of your own.",
  });
}

function keyOf(given: Arguments): { repository?: string; branch?: string } {
  const repository = given.text("repository");
  const branch = given.text("branch");
  return defined({ repository, branch });
}

async function list({ given, board, boards, former, words }: Request): Promise<undefined> {
  if (words.length > 0) throw usage(`troupe board list takes no arguments, but got "${words.join(" ")}".`);
  const isJson = wantsJson(given);
  if (given.has("all")) {
    const all = await boards();
    await write(isJson ? jsonList(all) : allBoards(all));
    return;
  }
  const entries = await board.list();
  await write(isJson ? jsonList(entries.map((entry) => ({ ...board.key, ...entry }))) : boardList(board.key, entries));
  const before = await former();
  if (before) printMessage(`there are notes from before this folder was trusted: --repository '${before.repository}'`);
}

async function show(request: Request): Promise<undefined> {
  const row = await find(request, single(request.words, "show <name>"));
  await write(wantsJson(request.given) ? line({ ...request.board.key, ...row }) : boardDetails(row));
}

async function add({ given, words, board }: Request): Promise<undefined> {
  const [name = "", ...rest] = words;
  const content = rest.join(" ");
  if (content.trim() === "") throw usage('Usage: troupe board add <name> "<text>"');
  const [firstLine = ""] = content.trim().split("\n");
  const description = given.text("description") ?? firstSentence(firstLine);
  const outcome = await board.add("user", { name, description, content }, { action: "add", actor: PERSON });
  await write(
    { added: `Added: ${name}\n`, replaced: `Changed: ${name}\n`, unchanged: `${name} says this already.\n` }[outcome],
  );
}

const MAX_DERIVED = 120;

/** Returns the first sentence of a note, as its default subject. */
function firstSentence(text: string): string {
  const [sentence = ""] = text.split(/(?<=[.!?])\s/);
  return sentence.length <= MAX_DERIVED ? sentence : `${sentence.slice(0, MAX_DERIVED - 1)}…`;
}

async function prune(request: Request): Promise<undefined> {
  const { given, words, board } = request;
  const isAll = given.has("all");
  if (isAll && !given.has("yes")) throw usage("This removes every note from the board. To confirm, add --yes.");
  if (!isAll && words.length === 0) throw usage("Usage: troupe board prune <name> …");
  const rows = isAll ? await board.rows() : await Promise.all(words.map((name) => find(request, name)));
  if (given.has("purge")) {
    for (const { src, name } of rows) await board.purge(src, name);
    await write(`Purged: ${namesOf(rows)}\n`);
    return;
  }
  const gone = new Set(rows.map(({ src, name }) => `${src}/${name}`));
  const change = await board.change({ action: "prune", actor: PERSON }, (current) =>
    current.filter(({ src, name }) => !gone.has(`${src}/${name}`)),
  );
  await write(
    change
      ? `Pruned: ${namesOf(rows)}. To have it back: troupe board restore ${change.id}\n`
      : "There was nothing to prune.\n",
  );
}

const namesOf = (rows: readonly { readonly name: string }[]): string =>
  rows.length === 0 ? "nothing" : rows.map(({ name }) => name).join(", ");

async function changes({ given, words, board }: Request): Promise<undefined> {
  const all = await board.changes();
  if (words.length === 0) {
    await write(wantsJson(given) ? jsonList(all) : changeList(all));
    return;
  }
  const id = changeNumber(single(words, "changes [change]"));
  const change = all.find((one) => one.id === id);
  if (!change)
    throw new TroupeError("usage", `There is no change ${id} of this board.`, { hint: "See: troupe board changes" });
  await write(wantsJson(given) ? line(change) : changeList([change]) + changeText(change));
}

async function restore({ words, board }: Request): Promise<undefined> {
  const id = words.length === 0 ? undefined : changeNumber(single(words, "restore [change]"));
  const change = await board.restore({ actor: PERSON }, id);
  await write(
    `Restored, as before change ${change.restores}: ${plural(change.rows.length, "item")}\n${changeText(change)}`,
  );
}

function changeNumber(word: string): number {
  const id = Number(word);
  if (Number.isInteger(id) && id > 0) return id;
  throw usage(`A change is a number, as troupe board changes names them, not "${word}".`);
}

function single(words: readonly string[], form: string): string {
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw usage(`Usage: troupe board ${form}`);
  return word;
}

/** Finds a note by name, and also by source if both an agent and the user have one of that name. */
async function find({ given, board }: Pick<Request, "given" | "board">, name: string) {
  const src: BoardSource | undefined = given.choice("src", boardSources);
  const rows = await board.rows();
  const found = rows.filter((row) => row.name === name && (src === undefined || row.src === src));
  const [row, other] = found;
  if (row && other) throw usage(`There are two notes called ${name}. Say which: --src agent or --src user.`);
  if (row) return row;
  const close = nearest(
    name,
    rows.map((one) => one.name),
  );
  const hint = close === undefined ? "See: troupe board list" : `Did you mean ${close}?`;
  throw new TroupeError("usage", `There is no note called "${name}" on this board.`, { hint });
}

const line = (value: object): string => `${jsonLine(value, process.stdout)}\n`;

export type BoardRequest = Pick<Request, "given" | "words" | "launcher"> & { readonly board: Board };
