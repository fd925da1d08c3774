/**
 * Everything the runtime reads where commands can write, against everything a command can put there: nothing blocks,
 * nothing from outside is shown or changed.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { entryAt } from "../../src/checkpoints/checkpoint-tree.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { fileCarrier } from "../../src/runtime/sessions/client-file-carrier.ts";
import { readPlan } from "../../src/runtime/setup/modes.ts";
import {
  listSessionFiles,
  readPlan as readPlanOf,
  readSessionFile,
  removePlan,
  writeSessionFile,
} from "../../src/server/sessions/session-files.ts";
import { workspaceDiff } from "../../src/server/sessions/workspace-diff.ts";
import { withAttachments } from "../../src/session/attachments.ts";
import { forkedFiles, forkFacts } from "../../src/session/rewind/fork.ts";
import type { Session } from "../../src/session/session.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { scanEvents } from "../../src/store/log-scan.ts";
import type { ClientFiles, SessionLog, Store } from "../../src/store/store.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { createShells } from "../../src/tools/shell/session-shells.ts";
import { hostileThings, makeOutside, SECRET } from "../support/hostile.ts";

const ID = "one";
const HASH = createHash("sha256").update(SECRET).digest("hex");
const event: SessionEvent = {
  ...{ id: "e1", timestamp: "2026-01-01T00:00:00.000Z", parentId: null },
  ...{ type: "session.info", data: { infoType: "note", message: "hello" } },
};

interface Place {
  readonly root: string;
  readonly store: Store;
  readonly log: SessionLog;
  readonly files: string;
  readonly records: string;
}

interface Reader {
  /** Relative to the folder of the session, unless the reader looks elsewhere. */
  readonly path: string;
  /** Everything that is shown, stored or sent after reading. */
  read(place: Place): Promise<unknown>;
}

const asSession = (log: SessionLog): Session => ({ record: { log } }) as unknown as Session;

async function detached({ records }: Place): Promise<unknown> {
  const base = join(records, "shell-detached-ev-1");
  const record = { shellId: "ev", command: "x", pid: 999_999_999, started: "0", mark: "m" };
  if (!hasEntry(`${base}.pid`)) writeFileSync(`${base}.pid`, JSON.stringify(record));
  if (!hasEntry(`${base}.exit`)) writeFileSync(`${base}.exit`, "0");
  const shells = createShells({
    folder: records,
    sandbox: createSandbox({ mode: "off", stateRoot: "/nonexistent" }),
  });
  const list = shells.list();
  const signal = new AbortController().signal;
  const reply = await shells.read({ shellId: "ev", waitMs: 0, signal }).catch((error: Error) => error.message);
  const stopped = await shells.stop("ev").catch((error: Error) => error.message);
  await shells.closeAll();
  return [list, reply, stopped];
}

function hasEntry(path: string): boolean {
  return readdirSync(join(path, "..")).includes(path.split("/").at(-1) ?? "");
}

async function forked({ store, log, root }: Place): Promise<unknown> {
  await log.append(event, { barrier: true });
  const copies = await forkedFiles(log.directory, await forkFacts((what) => scanEvents([event], what)));
  const summary = { sessionId: "two", cwd: "/", createdAt: "", updatedAt: "", turns: 0 };
  await store.fork(ID, {
    sessionId: "two",
    events: { count: 1, changedTypes: new Set(), change: (one) => one, added: [] },
    summary,
    copies,
  });
  const target = join(root, "session-state", "two", "files");
  return existsSync(target) ? readdirSync(target).map((name) => readFileSync(join(target, name), "utf8")) : [];
}

/** A client that keeps the session, as far as the carrier needs one. */
function client(there: Map<string, string>): ClientFiles {
  return {
    directory: "/kept",
    nameOf: (path) => `/kept/${path}`,
    read: async (path) => there.get(path),
    write: async (path, content) => void there.set(path, content),
    remove: async (path) => void there.delete(path),
    list: async (folder) =>
      [...there.keys()].filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1)),
    copyOf: () => undefined,
    sqlite: undefined,
  };
}

async function carried({ log }: Place): Promise<unknown> {
  const there = new Map<string, string>();
  const carrier = await fileCarrier({ ...log, clientFiles: client(there) }, nodeDisk);
  writeFileSync(join(log.directory, "files", "new.md"), "a note");
  await carrier?.carry();
  expect(there.get("files/new.md")).toBe("a note");
  return [...there];
}

const readers: Readonly<Record<string, Reader>> = {
  "the log of a detached command": { path: "records/shell-detached-ev-1.log", read: detached },
  "the identity of a detached command": { path: "records/shell-detached-ev-1.pid", read: detached },
  "the exit code of a detached command": { path: "records/shell-detached-ev-1.exit", read: detached },
  "a large answer": {
    path: "records/1-agent-answer.txt",
    read: ({ log, records }) => log.readFile(join(records, "1-agent-answer.txt")),
  },
  "a large answer of an older version": {
    path: "files/1-agent-answer.txt",
    read: ({ log, files }) => log.readFile(join(files, "1-agent-answer.txt")),
  },
  "an asset": { path: `records/${HASH}.png`, read: ({ log }) => shown(log.readAsset(`sha256:${HASH}`)) },
  "an asset of an older version": {
    path: `files/${HASH}.png`,
    read: ({ log }) => shown(log.readAsset(`sha256:${HASH}`)),
  },
  "the plan": { path: "files/plan.md", read: ({ files }) => readPlan(files) },
  "the plan, for a client": { path: "files/plan.md", read: ({ log }) => readPlanOf(asSession(log)) },
  "a file, for a client": { path: "files/x.md", read: ({ log }) => readSessionFile(asSession(log), "x.md") },
  "all files, for a client": { path: "files/x.md", read: ({ log }) => listSessionFiles(asSession(log)) },
  "the files that a client keeps": { path: "files/x.md", read: carried },
  "the files of a fork": { path: "files/x.md", read: forked },
  "a file of the workspace that undo looks at": {
    path: "files/x.md",
    read: async ({ files }) => {
      const entry = await entryAt(join(files, "x.md"));
      return entry.kind === "file" ? [entry.kind, entry.mode] : entry.kind;
    },
  },
  "an attached file": {
    path: "files/x.md",
    read: ({ log, files }) =>
      withAttachments("look", [{ type: "file", path: join(files, "x.md"), displayName: "x.md" }], log),
  },
  "a file that git does not know": {
    path: "files/x.md",
    read: async ({ files }) => {
      execFileSync("git", ["init", "-q", files]);
      return workspaceDiff(files, { mode: "unstaged", ignoreWhitespace: false, signal: AbortSignal.timeout(60_000) });
    },
  },
};

const shown = async (bytes: Promise<Uint8Array | undefined>): Promise<string> =>
  Buffer.from((await bytes) ?? []).toString("utf8");

async function withPlace(test: (place: Place) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const store = jsonlStore({ root: folder.at("home"), disk: nodeDisk, stamp: systemStamp });
  const log = await store.create(ID);
  const [files, records] = [join(log.directory, "files"), join(log.directory, "records")];
  for (const path of [files, records]) mkdirSync(path, { recursive: true });
  try {
    await test({ root: folder.at("home"), store, log, files, records });
  } finally {
    await log.close();
  }
}

const MAX_MS = 15_000;
const within = <T>(work: Promise<T>): Promise<T | "still waiting"> =>
  Promise.race([work, systemStamp.sleep(MAX_MS).then(() => "still waiting" as const)]);

describe.each(Object.entries(readers))("reading %s", (_, { path, read }) => {
  it.each(Object.entries(hostileThings))("reading a hostile file does not wait for or show %s", (_, make) =>
    withPlace(async (place) => {
      const outside = makeOutside(join(place.root, "..", "outside"));
      make(join(place.log.directory, path), outside);
      const result = await within(
        read(place).catch((error: unknown) => (error instanceof Error ? error.message : error)),
      );
      expect(result).not.toBe("still waiting");
      expect(JSON.stringify(result) ?? "").not.toContain(SECRET);
      expect(readFileSync(outside.secret, "utf8")).toBe(SECRET);
    }),
  );
});

describe("the content of an ordinary session", () => {
  it("ordinary session files are read, also those of an older version", () =>
    withPlace(async (place) => {
      const { log, files, records } = place;
      writeFileSync(join(files, "plan.md"), "the plan");
      writeFileSync(join(files, "1-agent-answer.txt"), "an old answer");
      writeFileSync(join(files, `${HASH}.png`), SECRET);
      const path = await log.writeFile("agent-answer.txt", "a new answer");
      expect(path).toBe(join(records, "1-agent-answer.txt"));
      expect(await log.readFile(path)).toBe("a new answer");
      expect(await log.readFile(join(files, "1-agent-answer.txt"))).toBe("an old answer");
      expect(await shown(log.readAsset(`sha256:${HASH}`))).toBe(SECRET);
      expect(await readPlan(files)).toBe("the plan");
      expect(await readSessionFile(asSession(log), "plan.md")).toBe("the plan");
      expect(await listSessionFiles(asSession(log))).toEqual(["1-agent-answer.txt", `${HASH}.png`, "plan.md"].sort());
      expect(await removePlan(asSession(log))).toBe(true);
      expect(await readPlan(files)).toBe("");
    }));
});

describe("writing for a client", () => {
  it.each(Object.entries(hostileThings))("writing for a client changes nothing outside through %s", (_, make) =>
    withPlace(async (place) => {
      const outside = makeOutside(join(place.root, "..", "outside"));
      const before = statSync(outside.secret).mtimeMs;
      make(join(place.files, "plan.md"), outside);
      await within(writeSessionFile(asSession(place.log), "plan.md", "written").catch((error: unknown) => error));
      expect(readFileSync(outside.secret, "utf8")).toBe(SECRET);
      expect(statSync(outside.secret).mtimeMs).toBe(before);
    }),
  );

  it("writing for a client shows and creates nothing in a folder that a link leads to", () =>
    withPlace(async (place) => {
      makeOutside(join(place.root, "..", "outside"));
      symlinkSync(join(place.root, "..", "outside"), join(place.files, "autostart"));
      const failed = writeSessionFile(asSession(place.log), "autostart/evil.desktop", "x");
      await expect(failed).rejects.toThrow(/outside/);
      await expect(readSessionFile(asSession(place.log), "autostart/secret")).rejects.toThrow(/outside/);
      expect(await listSessionFiles(asSession(place.log))).toEqual([]);
      expect(readdirSync(join(place.root, "..", "outside")).sort()).toEqual(["pipe", "secret"]);
    }));
});

describe("a session that a client keeps", () => {
  it.each([
    ["a folder on the way", "autostart", "files/autostart/evil.desktop"],
    ["the file itself", "evil.desktop", "files/evil.desktop"],
    ["the plan", "plan.md", "plan.md"],
  ])("a client-stored session is not read through a link in place of %s, and the user is notified", (_, link, path) =>
    withPlace(async (place) => {
      const outside = join(place.root, "..", "outside");
      mkdirSync(outside);
      symlinkSync(link === "autostart" ? outside : join(outside, "evil.desktop"), join(place.files, link));
      const there = new Map([
        [path, "evil"],
        ["files/good.md", "good"],
      ]);
      const log = { ...place.log, events: [event], clientFiles: client(there) };
      const carrier = await fileCarrier(log, nodeDisk);
      const told: string[] = [];
      carrier?.listen({
        record: { warn: (_: string, text: string) => told.push(text) },
        subscribe: () => {},
      } as unknown as Session);
      expect(readdirSync(outside)).toEqual([]);
      expect(readFileSync(join(place.files, "good.md"), "utf8")).toBe("good");
      expect(told).toEqual([expect.stringContaining("was not brought to this machine")]);
    }),
  );
});
