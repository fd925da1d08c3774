/** `npm run example cluster`, and the systemd unit beside it. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { read } from "../docs/documents.ts";
import { postgresPrograms } from "../support/postgres.ts";

const hasPrograms = postgresPrograms() !== undefined && spawnSync("git", ["--version"]).status === 0;

if (!hasPrograms) it.skip("the example of a cluster runs (skipped: no Postgres or no git here)");

/** Runs the example as `npm run example` does. `react` gets everything that it has printed so far. */
async function run(react: (output: string, child: ChildProcess) => void) {
  await using folder = await tempFolder({ "tmp/.keep": "" });
  for (const path of [folder.path, folder.at("tmp")]) chmodSync(path, 0o711); // as root, the server is another user
  const env = { PATH: process.env.PATH, HOME: folder.at("home"), TMPDIR: folder.at("tmp") };
  const child = spawn(process.execPath, [resolve("scripts/example.mjs"), "cluster"], {
    ...{ cwd: folder.path, env, detached: true },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      react(output, child);
    });
  }
  const code = await new Promise<number | null>((done) => child.once("close", done));
  return { code, output, left: readdirSync(folder.at("tmp")).filter((name) => name !== ".keep") };
}

describe.runIf(hasPrograms)("the example of a cluster", () => {
  it("the example of a cluster removes the server and its folder on Ctrl+C", async () => {
    let isSent = false;
    const { code, output, left } = await run((text, { pid = 0 }) => {
      if (isSent || !text.includes("Postgres runs at")) return;
      isSent = true;
      process.kill(-pid, "SIGINT"); // the whole group, as a terminal does
    });
    expect({ code, left }, output).toEqual({ code: 130, left: [] });
    const [, port = ""] = /127\.0\.0\.1:(\d+)/.exec(output) ?? [];
    const client = connect(Number(port), "127.0.0.1");
    await expect(once(client, "connect")).rejects.toThrow("ECONNREFUSED");
  });

  it.runIf(process.env.TROUPE_SLOW)(
    "the example of a cluster answers the work of two tenants and shows the state of the cluster",
    async () => {
      const { code, output, left } = await run(() => undefined);
      expect({ code, left }, output).toEqual({ code: 0, left: [] });
      for (const line of ["`total`: defined at `total.js:1`", "`discount`: defined at `shop.js:2`"]) {
        expect(output).toContain(line);
      }
      expect(output).toMatch(/done +default +acme +1 /);
      expect(output).toMatch(/done +default +globex +1 /);
      expect(output.match(/ alive /g)).toHaveLength(2);
    },
  );
});

describe("the systemd unit of a worker", () => {
  const unit = read("examples/cluster/troupe-worker.service");
  const names = [...unit.matchAll(/^([A-Z]\w+)=/gm)].map(([, name = ""]) => name);
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1] ?? "";

  it("the systemd unit gives a worker enough time to finish its sessions, and ends no commands before", () => {
    const [, drainMs = ""] = /DRAIN_MS = ([\d_]+);/.exec(read("src/cli/cluster/worker.ts")) ?? [];
    expect(Number(value("TimeoutStopSec")) * 1_000).toBeGreaterThan(Number(drainMs.replaceAll("_", "")) + 30_000);
    expect([value("KillSignal"), value("KillMode")]).toEqual(["SIGTERM", "mixed"]);
  });

  it("the systemd unit sets no option that breaks the sandbox of commands", () => {
    const [, comment = ""] = /must stay off: ([\s\S]*?)\. MemoryDeny/.exec(unit.replaceAll("\n# ", " ")) ?? [];
    const broken = comment.split(", ").map((option) => option.split("=")[0] ?? "");
    expect(broken).toHaveLength(8);
    expect(names.filter((name) => [...broken, "MemoryDenyWriteExecute"].includes(name))).toEqual([]);
  });
});
