import { chmodSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { SessionMcp } from "../../src/runtime/mcp/session-mcp.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { openPins } from "../../src/tools/mcp/config/pins.ts";
import type { McpServerConfig } from "../../src/tools/mcp/server.ts";
import { callFirst, never, scripted, stage } from "./stage.ts";

const server = fileURLToPath(new URL("./servers/scripted.mjs", import.meta.url));

/** A package runner whose installation ends when the file "go" appears. */
async function runner(folder: TempFolder, timeoutMs: number): Promise<McpServerConfig> {
  const script = [
    "#!/bin/sh",
    'cd "$(dirname "$0")"',
    "echo yes > started",
    "while [ ! -e go ]; do sleep 0.05; done",
    "echo yes > installed",
    `exec "${process.execPath}" "${server}" good`,
  ];
  await folder.files({ npx: `${script.join("\n")}\n` });
  chmodSync(folder.at("npx"), 0o755);
  const transport = {
    type: "stdio" as const,
    command: folder.at("npx"),
    args: ["-y", "some-package"],
    environment: {},
  };
  return { name: "slow", scope: "user", source: "test", transport, tools: ["*"], timeoutMs };
}

describe("a server whose command installs its package first", () => {
  it("an MCP server that installs its package first connects although this takes longer than its timeout", async () => {
    await using folder = await tempFolder();
    await using mcp = stage({ limits: { slowMs: 50 } });
    const notices: string[] = [];
    const slow = mcp.use(await runner(folder, 200), { onNotice: (_name, message) => void notices.push(message) });
    const listed = slow.definitions(never());
    await expect.poll(() => notices.length).toBe(1);
    // Longer than the timeout of the server, and no sign of it.
    await new Promise((resolve) => setTimeout(resolve, 400));
    await folder.files({ go: "" });
    expect((await listed).map(({ name }) => name)).toEqual(["echo"]);
    expect(notices[0]).toMatch(/needs more than .* to start\. Its package may still be downloading\./);
  });

  it("an MCP server may finish its installation when the session ends during it", async () => {
    await using folder = await tempFolder();
    const mcp = stage();
    const slow = mcp.use(await runner(folder, 10_000));
    const connecting = slow.definitions(never()).catch((error: Error) => error.message);
    await expect.poll(() => existsSync(folder.at("started"))).toBe(true);
    await slow.release();
    const closed = mcp.close();
    // A program that was to be killed would be by now.
    await new Promise((resolve) => setTimeout(resolve, 800));
    await folder.files({ go: "" });
    await closed;
    expect(existsSync(folder.at("installed"))).toBe(true);
    expect(await connecting).toMatch(/is stopped/);
  });

  it("an MCP server that installs its package first is awaited by a session with one message", async () => {
    await using folder = await tempFolder();
    await using mcp = stage();
    const config = await runner(folder, 10_000);
    const pins = await openPins({ disk: nodeDisk, stateRoot: folder.at("state") });
    const nothing = (): void => undefined;
    const session = (waitsForAll: boolean) =>
      new SessionMcp({
        ...{ configs: [config], owner: "session", reservedNames: [], apps: false, waitsForAll },
        ...{ onStatus: nothing, onNotice: nothing, onChange: nothing, onListChanged: nothing },
        roots: () => [],
        answerers: () => ({}),
        connections: async () => mcp.connections,
        pins: async () => pins,
        // Time is up at once for those who do not wait for all.
        stamp: { ...systemStamp, sleep: async () => undefined },
        tokens: {
          ...{ owner: "session", canAsk: () => false, hasDeclined: () => false, askAgain: nothing },
          request: async () => ({ kind: "cancelled" }),
        },
      });
    const impatient = session(false);
    await impatient.ready(never());
    expect(impatient.tools).toEqual([]);
    const patient = session(true);
    const ready = patient.ready(never());
    await folder.files({ go: "" });
    await ready;
    expect(patient.tools.map(({ name }) => name)).toEqual(["slow-echo"]);
    await Promise.all([impatient.close(), patient.close()]);
  });
});

describe("a server that ignores methods it does not know", () => {
  it("an MCP server that ignores unknown methods is queried for its version once, not at each start", async () => {
    await using folder = await tempFolder({ log: "" });
    const config = scripted("silent", { argument: folder.at("log"), timeoutMs: 6000 });
    for (const start of [1, 2]) {
      const pins = await openPins({ disk: nodeDisk, stateRoot: folder.at("state") });
      await using mcp = stage({
        probes: { isIgnored: async (one) => pins.ignoresProbe(one), wasIgnored: (one) => pins.probeIgnored(one) },
      });
      expect(await callFirst(mcp.use(config))).toContain("hello");
      const asked = (await folder.read("log")).match(/^(pid|server\/discover|initialize)/gm);
      const first = ["pid", "server/discover", "initialize"];
      expect(asked).toEqual(start === 1 ? first : [...first, "pid", "initialize"]);
    }
  });
});
