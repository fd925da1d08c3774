/** The changes of a session that runs on other machines: from copies of its checkpoints, and from the diffs in its log. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../checkpoints/checkpoint-tree.ts";
import type { Checkpoints, StoredChange } from "../../checkpoints/checkpoints.ts";
import { StoredTexts } from "../../checkpoints/stored-texts.ts";
import { nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { changeOf } from "./session-diff.ts";
import type { Change } from "./workspace-diff.ts";

export interface StoredDiff {
  readonly changes: readonly Change[];
  /** True if changes of commands are left out: the copies can be read only with the key of the worker. */
  readonly isPartial: boolean;
}

interface StoredChanges {
  readonly sessionId: string;
  /** The folder above `checkpoints`, which this may change. */
  readonly directory: string;
  readonly checkpoints: Checkpoints;
  readonly events: AsyncIterable<SessionEvent>;
}

/** Compares each file before the first change and after the last one. Files of this machine are not looked at. */
export async function storedDiff({ sessionId, directory, checkpoints, events }: StoredChanges): Promise<StoredDiff> {
  let isPartial = false;
  const all = await checkpoints.changes().catch(async () => {
    isPartial = true;
    await removeCommands(directory);
    return checkpoints.changes();
  });
  const made = isPartial ? [] : await checkpoints.creations();
  const byPath = new Map<string, StoredChange[]>();
  for (const change of [...all, ...made].sort((one, other) => one.seq - other.seq))
    byPath.set(change.path, [...(byPath.get(change.path) ?? []), change]);
  const patches = await patchesIn(events);
  const changes: Change[] = [];
  for (const [path, own] of [...byPath].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const change = await netChange(path, own, { sessionId, checkpoints, patches });
    if (change) changes.push(change);
  }
  return { changes, isPartial };
}

/** Removes what cannot be read without the key from the copy of the list of changes. */
async function removeCommands(directory: string): Promise<void> {
  const list = join(directory, "checkpoints", "changes.jsonl");
  const lines = (await readFile(list, "utf8").catch(() => "")).split("\n");
  const readable = lines.filter((line) => !/^\{"kind":"(tree|settled)"/.test(line)).join("\n");
  await replaceFile(nodeDisk, list, Buffer.from(readable));
}

/** Returns the diffs in the results of calls, by call. */
async function patchesIn(events: AsyncIterable<SessionEvent>): Promise<ReadonlyMap<string, string>> {
  const patches = new Map<string, string>();
  for await (const { type, data } of events) {
    if (type === "tool.execution_complete" && data.result?.detailedContent)
      patches.set(data.toolCallId, data.result.detailedContent);
  }
  return patches;
}

interface Sources {
  readonly sessionId: string;
  readonly checkpoints: Checkpoints;
  readonly patches: ReadonlyMap<string, string>;
}

async function netChange(path: string, own: readonly StoredChange[], sources: Sources): Promise<Change | undefined> {
  const before = own[0]?.before;
  const now = own.findLast(({ after }) => after !== undefined)?.after;
  if (!before || !now || JSON.stringify(content(before)) === JSON.stringify(content(now))) return undefined;
  const texts = await textsOf(own, sources);
  const root = rootOf(path, sources.sessionId);
  const change = await changeOf({ path, before, now }, { texts, root, ignoreWhitespace: false });
  if (!change?.diff.endsWith("Binary files differ\n")) return change;
  // The text before the first change is not known: the diffs of the single calls are.
  const single = own.map(({ toolCallId }) => sources.patches.get(toolCallId) ?? "").filter((patch) => patch !== "");
  return single.length === 0 ? change : { ...change, diff: single.map((patch) => `${patch.trimEnd()}\n`).join("") };
}

/** The mode of a file that was not written yet is not known. */
const content = (state: StoredChange["before"]): object => (state.kind === "file" ? { hash: state.hash } : state);

/** Returns the texts of a file: copies that can be read, and what the diffs of calls make of them. */
async function textsOf(own: readonly StoredChange[], sources: Sources): Promise<Pick<StoredTexts, "of">> {
  const { applyPatch, parsePatch } = await import("diff");
  const stored = new StoredTexts(sources.checkpoints);
  const known = new Map<string, string>();
  const of: StoredTexts["of"] = async (state, path) =>
    (state.kind === "file" ? known.get(state.hash) : undefined) ?? (await stored.of(state, path));
  for (const { before, after, path, toolCallId } of own) {
    const older = await of(before, path);
    if (older === undefined || after?.kind !== "file") continue;
    try {
      for (const patch of parsePatch(sources.patches.get(toolCallId) ?? "")) {
        const text = applyPatch(older, patch);
        if (text !== false && sha256(Buffer.from(text)) === after.hash) known.set(after.hash, text);
      }
    } catch {
      // The result has no diff, or only a part of it.
    }
  }
  return { of };
}

/** Returns the session's working folder, which lies elsewhere on each worker. */
function rootOf(path: string, sessionId: string): string {
  const part = `/workspaces/${sessionId}/`;
  const at = path.replaceAll("\\", "/").indexOf(part);
  return at < 0 ? "/" : path.slice(0, at + part.length - 1);
}
