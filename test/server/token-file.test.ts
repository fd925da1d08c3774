import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";

it("a server on a port leaves its token for its person alone, and takes it away when it is stopped", async () => {
  await using folder = await tempFolder({ "work/a.txt": "" });
  const env = { PATH: process.env.PATH, HOME: folder.at("home"), TROUPE_HOME: folder.at("state") };
  const child = spawn(process.execPath, [resolve("bin/troupe.js"), "--headless"], { cwd: folder.at("work"), env });
  try {
    const port = await portOf(child);
    expect(existsSync(folder.at(`state/server/${port}.token`))).toBe(true);
    child.kill("SIGINT");
    await once(child, "exit");
    expect(readdirSync(folder.at("state/server"))).toEqual([]);
  } finally {
    child.kill("SIGKILL");
  }
});

async function portOf(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout ?? []) {
    const [, port] = /listening on port (\d+)/.exec(String(chunk)) ?? [];
    if (port) return port;
  }
  throw new Error("The server ended before it listened.");
}
