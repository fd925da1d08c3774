import { existsSync, readdirSync } from "node:fs";
import {
  approveAll,
  type CopilotSession,
  defineTool,
  type SessionConfig,
  type SessionFsProvider,
} from "@github/copilot-sdk";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { joining, type ServerStage, serverStage } from "./stage.ts";

const place = {
  ...{ initialCwd: "/", sessionStatePath: "/kept/state", conventions: "posix" as const },
  capabilities: { sqlite: true },
};

type Database = InstanceType<typeof DatabaseSync>;

/** What a program keeps in memory, for all its sessions. */
const kept = new Map<string, string>();
const databases = new Map<string, Database>();
const asked: { type: string; query: string }[] = [];
let refusal: string | undefined;

const missing = (path: string): Error => Object.assign(new Error(`ENOENT: ${path}`), { code: "ENOENT" });
const fileOf = ({ sessionId }: CopilotSession, name: string): string | undefined =>
  kept.get(`${sessionId}:${place.sessionStatePath}/${name}`);

function provider({ sessionId }: CopilotSession): SessionFsProvider {
  const key = (path: string): string => `${sessionId}:${path}`;
  const namesIn = (path: string): string[] => {
    const below = [...kept.keys()].filter((one) => one.startsWith(`${key(path)}/`));
    return [...new Set(below.map((one) => one.slice(key(path).length + 1).split("/")[0] ?? ""))];
  };
  const set = (path: string, content: string): void => {
    if (refusal !== undefined) throw new Error(refusal);
    kept.set(key(path), content);
  };
  const read = (path: string): string => {
    const content = kept.get(key(path));
    if (content === undefined) throw missing(path);
    return content;
  };
  return {
    readFile: async (path) => read(path),
    writeFile: async (path, content) => set(path, content),
    appendFile: async (path, content) => set(path, (kept.get(key(path)) ?? "") + content),
    exists: async (path) => kept.has(key(path)),
    async stat(path) {
      const now = new Date().toISOString();
      return { isFile: true, isDirectory: false, size: read(path).length, mtime: now, birthtime: now };
    },
    mkdir: async () => undefined,
    readdir: async (path) => namesIn(path),
    readdirWithTypes: async (path) =>
      namesIn(path).map((name) => ({ name, type: kept.has(key(`${path}/${name}`)) ? "file" : "directory" })),
    async rm(path) {
      for (const one of [...kept.keys()]) if (one.startsWith(key(path))) kept.delete(one);
    },
    async rename(from, to) {
      set(to, read(from));
      kept.delete(key(from));
    },
    sqlite: {
      async query(type, query, params) {
        return run(sessionId, type, query, params);
      },
      async transaction(statements) {
        const database = databaseOf(sessionId);
        database.exec("BEGIN");
        try {
          const results = statements.map(({ queryType, query, params }) => run(sessionId, queryType, query, params));
          database.exec("COMMIT");
          return results;
        } catch (error) {
          database.exec("ROLLBACK");
          throw error;
        }
      },
      exists: async () => databases.has(sessionId),
    },
  };
}

function databaseOf(sessionId: string): Database {
  const database = databases.get(sessionId) ?? new DatabaseSync(":memory:");
  databases.set(sessionId, database);
  return database;
}

function run(sessionId: string, type: string, query: string, params: Record<string, string | number | null> = {}) {
  asked.push({ type, query });
  const database = databaseOf(sessionId);
  if (type === "exec") database.exec(query);
  if (type === "exec") return { columns: [], rows: [], rowsAffected: 0 };
  const statement = database.prepare(query);
  if (type === "run") return { columns: [], rows: [], rowsAffected: Number(statement.run(params).changes) };
  const rows = statement.all(params) as Record<string, string>[];
  return { columns: Object.keys(rows[0] ?? {}), rows, rowsAffected: 0 };
}

const options: SessionConfig = { onPermissionRequest: approveAll, createSessionFsProvider: provider };

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage({ transport: "tcp", sessionFs: place });
});
afterAll(() => stage[Symbol.asyncDispose]());

const toolResult = (): string => {
  const last = stage.model.requests.at(-1)?.request?.messages.findLast(({ role }) => role === "tool");
  return typeof last?.content === "string" ? last.content : "";
};

describe("sessions that a client keeps", () => {
  it("a client-stored session has its log and files at the client, and is resumed by another process", async () => {
    const session = await stage.client.createSession(options);
    stage.play(says("the word is plum"));
    await session.sendAndWait("say a word");
    await session.rpc.plan.update({ content: "# Plan\n" });
    await session.rpc.workspaces.createFile({ path: "notes/a.md", content: "a note" });
    await session.disconnect();
    expect(fileOf(session, "events.jsonl")).toContain("the word is plum");
    expect(fileOf(session, "events.jsonl")).toContain("session.shutdown");
    expect(fileOf(session, "workspace.yaml")).toContain(`id: "${session.sessionId}"`);
    expect(fileOf(session, "checkpoints/index.md")).toContain("# Checkpoints");
    expect(fileOf(session, "plan.md")).toBe("# Plan\n");
    expect(fileOf(session, "files/notes/a.md")).toBe("a note");
    expect(session.workspacePath).toBe(place.sessionStatePath);
    expect(existsSync(stage.folder.at(`home/session-state/${session.sessionId}/events.jsonl`))).toBe(false);

    const other = stage.newClient({ sessionFs: place, baseDirectory: stage.folder.at("other-home") });
    const again = await other.resumeSession(session.sessionId, options);
    stage.play(says("plum"));
    await again.sendAndWait("which word?");
    const sent = JSON.stringify(stage.model.requests.at(-1)?.request?.messages);
    expect(sent).toContain("the word is plum");
    expect(await again.rpc.plan.read()).toMatchObject({ exists: true, content: "# Plan\n" });
    expect(await again.rpc.workspaces.listFiles()).toEqual({ files: ["notes/a.md"] });
    // Where the tools of that process find it.
    const here = stage.folder.at(`other-home/session-state/${session.sessionId}/files`);
    expect(readdirSync(here).sort()).toEqual(["notes", "plan.md"]);
    await again.disconnect();
  });

  it("a client-stored session keeps large outputs at the client, and the agent can read the copy", async () => {
    const tool = defineTool("much", { handler: async () => `${"x".repeat(100_000)}\nthe end`, skipPermission: true });
    const session = await stage.client.createSession({ ...options, tools: [tool] });
    stage.play(calls(["much", {}]), says("so much"));
    await session.sendAndWait("go");
    const copy = /here it is (\S+)\.\n/.exec(toolResult())?.[1] ?? "";
    stage.play(calls(["grep", { pattern: "the end", path: copy, output_mode: "content" }]), says("done"));
    await session.sendAndWait("look");
    const name = [...kept.keys()].find((one) => one.startsWith(`${session.sessionId}:/kept/state/temp/`)) ?? "";
    expect(name).toMatch(/\/\d+-copilot-tool-output-[a-z0-9]+\.txt$/);
    expect(kept.get(name)).toContain("the end");
    expect(toolResult()).toContain("the end");
    await session.disconnect();
  });

  it("a client-stored session sends files that an agent writes, once the agent is idle", async () => {
    const session = await stage.client.createSession(options);
    const path = stage.folder.at(`home/session-state/${session.sessionId}/files/found.md`);
    stage.play(calls(["create", { path, file_text: "found it" }]), says("done"));
    await session.sendAndWait("write it down");
    await expect.poll(() => fileOf(session, "files/found.md")).toBe("found it");
    await session.disconnect();
  });

  it("a client-stored session has its database at the client: tables, rows and queries, several or none", async () => {
    const session = await stage.client.createSession(options);
    asked.length = 0;
    const query = async (sql: string): Promise<string> => {
      stage.play(calls(["sql", { query: sql }]), says("done"));
      await session.sendAndWait("go");
      return toolResult();
    };
    await query("CREATE TABLE items (id TEXT PRIMARY KEY, name TEXT); INSERT INTO items VALUES ('a', 'Widget')");
    expect(await query("SELECT name FROM items")).toContain("Widget");
    expect(await query("WITH n AS (SELECT 'b' AS id) INSERT INTO items SELECT id, 'Bolt' FROM n")).toBe(
      "1 row(s) inserted. Last inserted row ID: 0.",
    );
    expect(await query("INSERT INTO items VALUES ('c', 'Nut'); INSERT INTO items VALUES ('a', 'again')")).toContain(
      "None of the statements took effect",
    );
    expect(await query("SELECT count(*) AS n FROM items")).toContain("2");
    expect(await query("ATTACH 'x.db' AS x")).toContain("ATTACH is not available here");
    const types = asked.filter(({ query: sql }) => /items/.test(sql)).map(({ type }) => type);
    expect(types).toEqual(["exec", "run", "query", "run", "run", "run", "query"]);
    await query("INSERT INTO todos (id, title) VALUES ('t', 'Do it')");
    expect(await session.rpc.plan.readSqlTodos()).toMatchObject({ rows: [{ id: "t", title: "Do it" }] });
    await session.disconnect();
  });

  it("a client-stored session reports the client's errors, and continues when it works again", async () => {
    const session = await stage.client.createSession(options);
    stage.play(says("one"), says("two"));
    await session.sendAndWait("first");
    refusal = "the bucket is full";
    await expect(session.send("second")).rejects.toThrow(/the bucket is full/);
    refusal = undefined;
    expect((await session.sendAndWait("third"))?.data.content).toBe("two");
    await session.disconnect();
    expect(fileOf(session, "events.jsonl")).toContain("third");
  });

  it("a client-stored session must be requested before it is used", async () => {
    const session = await stage.client.createSession(options);
    const late = joining(stage.client);
    await late.start();
    const connection = Reflect.get(late, "connection") as {
      sendRequest(name: string, params: object): Promise<unknown>;
    };
    await expect(connection.sendRequest("sessionFs.setProvider", place)).rejects.toThrow(/before the first/);
    await late.stop();
    await session.disconnect();
  });

  it("a client-stored session ends cleanly when the client is lost, and can be resumed when it is back", async () => {
    const server = stage.newClient({ transport: "tcp" });
    await server.start();
    const owner = joining(server, { sessionFs: place });
    const session = await owner.createSession(options);
    stage.play(says("one"), says("two"));
    await session.sendAndWait("first");
    const watcher = await server.resumeSession(session.sessionId, { onPermissionRequest: approveAll });
    const heard: string[] = [];
    watcher.on("session.error", ({ data }) => void heard.push(data.message));
    await owner.forceStop();
    await expect.poll(() => heard.join()).toContain("has disconnected");
    await expect(server.createSession({ onPermissionRequest: approveAll })).rejects.toThrow(/has disconnected/);

    const back = joining(server, { sessionFs: place });
    const again = await back.resumeSession(session.sessionId, options);
    expect((await again.sendAndWait("second"))?.data.content).toBe("two");
    await again.disconnect();
    await back.stop();
  });
});
