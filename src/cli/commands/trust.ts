import {
  type Changed,
  listTrusted,
  readTrust,
  realFolder,
  recordTrust,
  removeTrust,
  requireReadable,
} from "../../catalog/trust.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import type { ItemTrust, PinnedItem } from "../../lib/pinned-item.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { plural, sanitise, visible } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { stateRoot } from "../../runtime/home.ts";
import { executableItems } from "../../runtime/workspace/workspace.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { terminalAsk } from "../ask.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";

export interface TrustContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  print(text: string): Promise<void>;
  /** Undefined if no user can be asked. */
  readonly ask?: (question: string) => Promise<boolean>;
}

const context = (): TrustContext => ({
  environment: process.env,
  cwd: workspaceOf(process.cwd()),
  print: write,
  ...terminalAsk(),
});

const collected = (folder: string): Promise<readonly PinnedItem[]> =>
  executableItems(folder, { stateRoot: stateRoot(process.env), environment: process.env });

/** Trust applies to whole repositories: a hook at the root runs in all of its folders. */
function workspaceOf(folder: string): string {
  return workingDirectory(folder).gitRoot ?? folder;
}

/** `troupe trust`: records trust in a folder. Only items that were shown in full are trusted. */
export async function trustCommand(
  given: Arguments,
  collect: (folder: string) => Promise<readonly PinnedItem[]> = collected,
  around: TrustContext = context(),
): Promise<ExitCode> {
  const [, first, second, ...more] = given.words;
  const verb = first === "list" || first === "remove" ? first : "add";
  const named = verb === "add" ? first : second;
  const tooMany = more.length > 0 || (verb === "add" && second !== undefined) || (verb === "list" && second);
  if (tooMany) throw usage(`troupe trust ${verb === "add" ? "" : `${verb} `}got too many arguments.`);
  const home = stateRoot(around.environment);
  switch (verb) {
    case "list":
      await around.print(wantsJson(given) ? listJson(home) : listText(home));
      return exitCodes.done;
    case "remove":
      return remove(home, named ?? around.cwd, around);
    case "add":
      return add({ home, folder: named ?? around.cwd, collect, around, isAsked: !given.has("yes") });
  }
}

async function add(request: {
  home: string;
  folder: string;
  collect: (folder: string) => Promise<readonly PinnedItem[]>;
  around: TrustContext;
  isAsked: boolean;
}): Promise<ExitCode> {
  const { home, collect, around, isAsked } = request;
  const folder = realFolder(request.folder);
  if (folder === undefined) throw new TroupeError("usage", `${request.folder} is not a folder.`);
  const book = readTrust(home);
  for (const { message } of book.notices) printMessage(message);
  const items = await collect(folder);
  requireReadable(items);
  const trust = book.of(folder);
  await around.print(itemsText(folder, items, (item) => trust.check(item)));
  if (isAsked) {
    if (!around.ask) {
      throw usage("troupe trust asks before it trusts, and there is no terminal to ask on. To confirm, add --yes.");
    }
    const isAgreed = await around.ask(`Trust ${folder} with this? [y/N] `);
    if (!isAgreed) {
      await around.print("Nothing was changed.\n");
      return exitCodes.failed;
    }
  }
  const changed = await recordTrust({ stateRoot: home, folder, items, disk: nodeDisk, stamp: systemStamp });
  sayKept(changed);
  await around.print(sanitise(`Trusted: ${folder}\n`));
  return exitCodes.done;
}

async function remove(home: string, folder: string, around: TrustContext): Promise<ExitCode> {
  const removed = await removeTrust({ stateRoot: home, folder, disk: nodeDisk, stamp: systemStamp });
  sayKept(removed);
  if (!removed.found) throw new TroupeError("usage", `${folder} is not trusted.`, { hint: "See: troupe trust list" });
  await around.print(sanitise(`No longer trusted: ${folder}\n`));
  return exitCodes.done;
}

function sayKept({ keptAs }: Changed): void {
  if (keptAs !== undefined) printMessage(`the old content of trust.json was saved as ${keptAs}`);
}

const MARKS: Record<ItemTrust, string> = {
  approved: "as approved before",
  changed: "CHANGED since it was approved",
  new: "new",
  untrusted: "new",
};

/** Every line of an item has a mark before it, so that no item can imitate our own text. */
function itemsText(folder: string, items: readonly PinnedItem[], check: (item: PinnedItem) => ItemTrust): string {
  if (items.length === 0) return sanitise(`Nothing in ${folder} could run or decide anything by itself yet.\n`);
  const shown = items.map((item) => {
    const head = oneLine(`${item.kind} ${item.id} (${MARKS[check(item)]})`);
    const body = visible(item.shown)
      .split("\n")
      .map((line) => `  | ${line}`);
    return [head, ...body].join("\n");
  });
  return `${oneLine(`${folder} brings ${plural(items.length, "thing")} that would be used:`)}\n\n${shown.join("\n\n")}\n\n`;
}

function listJson(home: string): string {
  const { folders, notices } = listTrusted(home);
  for (const { message } of notices) printMessage(message);
  return jsonList(folders.map(({ folder, trustedAt, items }) => ({ folder, trustedAt, items: items.length })));
}

function listText(home: string): string {
  const { folders, notices } = listTrusted(home);
  for (const { message } of notices) printMessage(message);
  if (folders.length === 0) return "No folder is trusted.\n";
  const rows = folders.map(({ folder, trustedAt, items }) =>
    oneLine(`${trustedAt.slice(0, 10)}  ${plural(items.length, "thing").padEnd(10)}  ${folder}`),
  );
  return `${rows.join("\n")}\n`;
}

const oneLine = (text: string): string => sanitise(text).replace(/\n/g, " ");
