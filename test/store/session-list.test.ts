import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionSummary, Store } from "../../src/store/store.ts";
import { encodeSummary } from "../../src/store/summary.ts";
import { encodeLog, hastyDisk, messages, realStore, seeded, temporaryFolder } from "./support.ts";

interface Home {
  readonly root: string;
  readonly file: string;
  path(index: number, name: string): string;
  newStore(): Store;
}

const idOf = (index: number): string => `session-${String(index).padStart(4, "0")}`;

function summaryOf(index: number, title: string): SessionSummary {
  const at = new Date(Date.UTC(2026, 0, 1) + index * 1000).toISOString();
  return { sessionId: idOf(index), cwd: `/work/${index % 3}`, title, createdAt: at, updatedAt: at, turns: index };
}

function homeWith(count: number): Home {
  const root = temporaryFolder();
  const path = (index: number, name: string): string => join(root, "session-state", idOf(index), name);
  for (let index = 0; index < count; index++) {
    mkdirSync(path(index, ""), { recursive: true });
    writeFileSync(path(index, "events.jsonl"), Buffer.concat(encodeLog(messages(3))));
    if (index % 5 > 0) writeFileSync(path(index, "workspace.yaml"), encodeSummary(summaryOf(index, `title ${index}`)));
    utimesSync(path(index, "events.jsonl"), 1_700_000_000, 1_700_000_000 + index);
  }
  const newStore = (): Store => realStore(root, { disk: hastyDisk });
  return { root, path, newStore, file: join(root, "session-list.json") };
}

/** What a store says that has never seen the file. */
async function listedAnew({ file, newStore }: Home): Promise<readonly SessionSummary[]> {
  const kept = existsSync(file) ? readFileSync(file) : undefined;
  rmSync(file, { force: true, recursive: true });
  const list = await newStore().list();
  if (kept) writeFileSync(file, kept);
  return list;
}

describe("the list of sessions", () => {
  it("the list of sessions is the same from its file as from the sessions themselves (200 changes)", async () => {
    const home = homeWith(60);
    const random = seeded(5);
    const server = home.newStore();
    for (let change = 0; change < 200; change++) {
      const index = Math.floor(random() * 60);
      const kind = Math.floor(random() * 6);
      if (kind === 0) rmSync(home.path(index, ""), { recursive: true, force: true });
      else mkdirSync(home.path(index, ""), { recursive: true });
      if (kind === 1) appendFileSync(home.path(index, "events.jsonl"), Buffer.concat(encodeLog(messages(1))));
      if (kind === 2)
        writeFileSync(home.path(index, "workspace.yaml"), encodeSummary(summaryOf(index, `new ${change}`)));
      if (kind === 3) rmSync(home.path(index, "workspace.yaml"), { force: true });
      if (kind === 4) writeFileSync(home.path(index, "lock"), "{}");
      if (kind === 5) rmSync(home.path(index, "lock"), { force: true });
      const expected = await listedAnew(home);
      expect(await server.list()).toEqual(expected);
      expect(await home.newStore().list()).toEqual(expected);
    }
    expect(existsSync(home.file)).toBe(true);
  });

  it("the list of sessions is read again when its file is damaged, empty, of another version, or a folder", async () => {
    const home = homeWith(40);
    const expected = await home.newStore().list();
    expect(expected).toHaveLength(40);
    const good = readFileSync(home.file, "utf8");
    const harmed: (() => void)[] = [
      () => writeFileSync(home.file, ""),
      () => writeFileSync(home.file, good.slice(0, -100)),
      () => writeFileSync(home.file, good.replace('"version":1', '"version":2').replaceAll("title", "other")),
      () => writeFileSync(home.file, '{"version":1,"sessions":[1,null,["a"],["a","b",{"sessionId":7}]]}'),
      () => writeFileSync(home.file, '{"version":1,"sessions":{}}'),
      () => {
        rmSync(home.file);
        mkdirSync(home.file);
      },
    ];
    for (const harm of harmed) {
      harm();
      expect(await home.newStore().list()).toEqual(expected);
    }
  });

  it("the list of sessions does not store the summary of an open session", async () => {
    const home = homeWith(40);
    writeFileSync(home.path(1, "lock"), "{}");
    await home.newStore().list();
    writeFileSync(home.path(1, "workspace.yaml"), encodeSummary(summaryOf(1, "written before the lock was released")));
    rmSync(home.path(1, "lock"));
    const listed = (await home.newStore().list()).find(({ sessionId }) => sessionId === idOf(1));
    expect(listed?.title).toBe("written before the lock was released");
  });

  it("the list of sessions reads only changed sessions", async () => {
    const home = homeWith(40);
    await home.newStore().list();
    // A summary that no file has: it can only be from the list.
    const told = readFileSync(home.file, "utf8").replace('"title 7"', '"from the list"');
    writeFileSync(home.file, told);
    const titles = async () => (await home.newStore().list()).map(({ title }) => title);
    expect(await titles()).toContain("from the list");
    writeFileSync(home.path(7, "workspace.yaml"), encodeSummary(summaryOf(7, "from the session")));
    expect(await titles()).toContain("from the session");
  });
});
