/** Small things a user reads: hints, errors and templates of the built program. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, type TroupeOptions, troupe } from "../support/troupe.ts";

async function desk() {
  const folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path);
  return {
    home,
    ok: ["--model", script(folder.path, [{ say: "ok" }])],
    run: (args: readonly string[], more: Partial<TroupeOptions> = {}) => troupe(args, { cwd, home, ...more }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

it("memory add says that memory is off, unless the settings or the environment turn it on", async () => {
  await using at = await desk();
  const off = await at.run(["memory", "add", "Use tabs."]);
  expect(off).toMatchObject({ code: 0, stderr: expect.stringContaining("memory is off with -p: use --enable-memory") });
  const on = await at.run(["memory", "add", "Use spaces."], { environment: { TROUPE_MEMORY: "on" } });
  expect(on).toMatchObject({ code: 0, stderr: "" });
  writeFileSync(join(at.home, "settings.json"), '{ "memory": { "enabled": true } }');
  expect(await at.run(["memory", "add", "Use both."])).toMatchObject({ code: 0, stderr: "" });
  const id = /: (\S+)/.exec(off.stdout)?.[1] ?? "";
  expect((await at.run(["memory", "show", id])).stdout).toMatch(/^created +\S+ \(today\)$/m);
});

it("--plugin-dir refuses a folder that does not exist", async () => {
  await using at = await desk();
  const typed = await at.run(["-p", "x", ...at.ok, "--plugin-dir", "nope"]);
  expect(typed).toMatchObject({ code: 2, stdout: "" });
  expect(typed.stderr).toContain("--plugin-dir nope: there is no such folder.");
  expect(await at.run(["agents", "list", "--plugin-dir", "nope"])).toMatchObject({ code: 2 });
});

it("the error for an unknown subcommand names the help of the command once", async () => {
  await using at = await desk();
  for (const command of ["tasks", "mcp", "agents", "sessions", "board"]) {
    const { stderr } = await at.run([command, "bogus"]);
    expect(stderr).toContain(`See \`troupe ${command} --help\`.`);
    expect(stderr.match(/See /g)).toHaveLength(1);
  }
});

it("troupe agents writes a template of an agent whose models exist", async () => {
  await using at = await desk();
  const { stdout } = await at.run(["agents", "new", "tester", "--user"]);
  const text = readFileSync(stdout.trim(), "utf8");
  const names = /^# models: \[(.*)\]$/m.exec(text)?.[1]?.split(", ") ?? [];
  const known = (await at.run(["models"])).stdout;
  expect(names.filter((name) => !known.includes(`/${name} `))).toEqual([]);
  expect(names).not.toEqual([]);
});

it("an error for an unknown address shows the whole base URL without its secrets", async () => {
  await using at = await desk();
  const server = createServer((_, response) => response.writeHead(404).end("no such page"));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const { code, stderr } = await at.run(["-p", "x"], {
    environment: { TROUPE_BASE_URL: `http://127.0.0.1:${port}/openai/v9`, TROUPE_MODEL: "any" },
  });
  server.close();
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr: expect.stringContaining(`the base URL http://127.0.0.1:${port}/openai/v9.`),
  });
});
