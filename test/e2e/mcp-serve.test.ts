import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, it } from "vitest";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { script } from "../support/troupe.ts";

const bin = resolve("bin/troupe.js");

interface Served extends AsyncDisposable {
  readonly client: Client;
  call(name: string, given?: Record<string, unknown>): Promise<Record<string, unknown>>;
}

/** The official client on `troupe mcp serve`, with a scripted model. */
async function serve(
  folder: TempFolder,
  options: { steps: readonly object[]; flags?: readonly string[]; mode?: "auto" | "legacy" },
): Promise<Served> {
  const { steps, flags = [], mode = "auto" } = options;
  const model = script(folder.at("scripts"), steps);
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const environment = { PATH: process.env.PATH ?? "", HOME: folder.at("home"), TROUPE_HOME: folder.at("home") };
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [bin, "mcp", "serve", "--model", model, ...flags],
      cwd: folder.at("work"),
      env: { ...environment, TROUPE_NO_DISCOVERY: "1" },
      stderr: "ignore",
    }),
  );
  const call: Served["call"] = async (name, given = {}) => {
    const result = await client.callTool({ name, arguments: given }, { timeout: 60_000 });
    const [block] = result.content;
    if (result.isError) throw new Error(block?.type === "text" ? block.text : "no reason");
    expect(JSON.parse(block?.type === "text" ? block.text : "")).toEqual(result.structuredContent);
    return result.structuredContent as Record<string, unknown>;
  };
  return { client, call, [Symbol.asyncDispose]: () => client.close() };
}

const place = () => tempFolder({ "work/a.txt": "one\n", "home/x": "", "other/b.txt": "" });

describe("troupe mcp serve", () => {
  it.each(["auto", "legacy"] as const)(
    "troupe mcp serve starts, continues, lists and closes a session (protocol: %s)",
    async (mode) => {
      await using folder = await place();
      const steps = [{ say: "It has one line." }, { say: "It is short." }];
      await using served = await serve(folder, { steps, mode });
      const { tools } = await served.client.listTools();
      expect(tools.map(({ name }) => name).sort()).toEqual([
        "get_session",
        "list_sessions",
        "send_message",
        "start_session",
        "stop_session",
        "wait_for_session",
      ]);
      const started = await served.call("start_session", { prompt: "How long is a.txt?", name: "lines" });
      const { sessionId } = started;
      const cwd = folder.at("work");
      expect(await served.call("wait_for_session", { sessionId })).toEqual({
        ...{ sessionId, cwd, name: "lines", status: "idle", answer: "It has one line." },
      });
      const more = await served.call("send_message", { sessionId, message: "Is that long?", waitSeconds: 30 });
      expect(more).toMatchObject({ status: "idle", answer: "It is short." });
      expect(await served.call("list_sessions")).toEqual({
        sessions: [{ sessionId, cwd, name: "lines", status: "idle" }],
      });
      await served.call("stop_session", { sessionId, close: true });
      expect(await served.call("list_sessions")).toEqual({ sessions: [] });
      await expect(served.call("get_session", { sessionId })).rejects.toThrow(/There is no session/);
    },
  );

  it("troupe mcp serve denies and reports calls that no flag allows, and runs those that a flag allows", async () => {
    await using folder = await place();
    const write = { call: { name: "create", arguments: { path: "new.txt", file_text: "hi\n" } } };
    const steps = [write, { say: "done" }];
    {
      await using served = await serve(folder, { steps });
      const end = await served.call("start_session", { prompt: "Write it.", waitSeconds: 60 });
      expect(end.denied).toEqual([expect.stringMatching(/^create: /)]);
      expect(existsSync(folder.at("work/new.txt"))).toBe(false);
    }
    await using served = await serve(folder, { steps, flags: ["--allow-tool", "write"] });
    const end = await served.call("start_session", { prompt: "Write it.", waitSeconds: 60 });
    expect(end).toMatchObject({ status: "idle", answer: "done" });
    expect(end.denied).toBeUndefined();
    expect(await folder.read("work/new.txt")).toBe("hi\n");
  });

  it("troupe mcp serve works only in the folders it was started with", async () => {
    await using folder = await place();
    const cwd = folder.at("other");
    {
      await using served = await serve(folder, { steps: [{ say: "here" }] });
      const refused = served.call("start_session", { prompt: "Look.", cwd });
      await expect(refused).rejects.toThrow(/outside the folders of this server.*--add-dir/);
    }
    await using served = await serve(folder, { steps: [{ say: "here" }], flags: ["--add-dir", cwd] });
    const end = await served.call("start_session", { prompt: "Look.", cwd, waitSeconds: 60 });
    expect(end).toMatchObject({ cwd, answer: "here" });
  });

  it("troupe mcp serve keeps no session when the start of one fails", async () => {
    await using folder = await place();
    await using served = await serve(folder, { steps: [{ say: "here" }] });
    await expect(served.call("start_session", { prompt: "Look.", model: "nowhere/nothing" })).rejects.toThrow(
      /nowhere/,
    );
    await expect(served.call("start_session", { prompt: "Look.", cwd: "missing" })).rejects.toThrow(/no folder/);
    expect(await served.call("list_sessions")).toEqual({ sessions: [] });
  });

  it("troupe mcp serve returns from waiting when the time is over, and stops a session on request", async () => {
    await using folder = await place();
    await using served = await serve(folder, { steps: [{ say: "half a", stall: true }] });
    const { sessionId } = await served.call("start_session", { prompt: "Think." });
    const waited = await served.call("wait_for_session", { sessionId, timeoutSeconds: 0.2 });
    expect(waited.status).toBe("working");
    await served.call("stop_session", { sessionId });
    const ended = await served.call("wait_for_session", { sessionId });
    expect(ended.status).not.toBe("working");
  });
});
