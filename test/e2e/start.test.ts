import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { modelServer, says } from "../../src/testing/index.ts";
import { troupe } from "../support/troupe.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "troupe-start-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** What a prompt that is answered at once has no use for. Whatever is added here stays out of every start. */
const NOT_AT_THE_START = [
  "zod",
  "yaml",
  "unbash",
  "diff",
  /^src\/model\/(understudy|ai-sdk|faux)/,
  /^src\/model\/wire\/(anthropic|openai\/openai-responses)/,
  /^src\/hooks\//,
  /^src\/tools\/memory\/memory-read/,
  /^src\/session\/(compaction\/compaction-(call|reply)|modes\/autopilot|agents\/typed-output)/,
  /^src\/(worktrees\/|checkpoints\/undo)/,
  /^src\/permissions\/(decide|question|rules|shell\/)/,
  /^src\/tools\/edit\//,
  /^src\/tools\/shell\/(?!shells|network\/network-rules|(list-|read-|stop-|write-)?bash\.)/,
  /^src\/tools\/web\/(?!web-access|search-engines|web-fetch|web-search)/,
  /^src\/tools\/database\/(?!session-database|process|sql)/,
  /^src\/tools\/mcp\/(?!config\/(config|config-files)\.ts)/,
  "src/store/index/index-sqlite.ts",
  /^src\/cli\/(dispatch|table\/|help\/|doctor\/|completion\/|config\/(?!own-defaults)|init\/|usage\/|mcp\/)/,
];

it("a prompt runs only the modules it uses", async () => {
  await using server = await modelServer({ steps: [says("ready")] });
  const workspace = join(root, "workspace");
  mkdirSync(workspace);
  const { code, stdout } = await troupe(["-s", "-p", "hello"], {
    cwd: workspace,
    home: join(root, "home"),
    environment: {
      TROUPE_BASE_URL: server.baseUrl,
      TROUPE_MODEL: "any",
      NODE_V8_COVERAGE: join(root, "coverage"),
    },
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: "ready\n" });
  const modules = modulesRun(join(root, "coverage"));
  expect(modules).toContain("src/cli/prompt-mode.ts");
  expect(modules.filter((name) => NOT_AT_THE_START.some((rule) => fits(name, rule)))).toEqual([]);
});

it("a Node that finds no code cache writes one with its first prompt, and uses it", async () => {
  await using server = await modelServer({ handler: () => says("ready") });
  const folder = join(root, "package");
  const built = readdirSync("dist/cli").filter((name) => name.endsWith(".cjs"));
  for (const part of ["bin", "package.json", ...built.map((name) => `dist/cli/${name}`)]) {
    cpSync(part, join(folder, part), { recursive: true });
  }
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const packs = join(folder, "dist/cli");
  const caches = () => readdirSync(packs).filter((name) => !name.endsWith(".cjs"));
  const run = (...args: string[]) => {
    const running = promisify(execFile)(process.execPath, [join(folder, "bin/troupe.js"), ...args], {
      cwd: root,
      env: { HOME: root, TROUPE_HOME: join(root, "home"), TROUPE_BASE_URL: server.baseUrl, TROUPE_MODEL: "any" },
    });
    running.child.stdin?.end();
    return running;
  };
  await run("sessions");
  expect(caches()).toEqual([]);
  expect((await run("-s", "-p", "hello")).stdout).toBe("ready\n");
  expect(caches()).toContain(`start.${process.version}-${process.arch}.cache`);
  const written = caches().map((name) => statSync(join(packs, name)).mtimeMs);
  expect((await run("-s", "-p", "hello")).stdout).toBe("ready\n");
  expect(caches().map((name) => statSync(join(packs, name)).mtimeMs)).toEqual(written);
});

it("the build leaves a code cache beside every pack", () => {
  const names = readdirSync("dist/cli");
  const packs = names.filter((name) => name.endsWith(".cjs") && name !== "first-frame.cjs");
  expect(packs.length).toBeGreaterThan(1);
  const caches = packs.map((name) => name.replace(/cjs$/, `${process.version}-${process.arch}.cache`));
  expect(names).toEqual(expect.arrayContaining(caches));
});

it("the derived tools of the build are equal to those of the sources", async () => {
  await using server = await modelServer({ steps: [says("built"), says("sources")] });
  const environment = { TROUPE_BASE_URL: server.baseUrl, TROUPE_MODEL: "any" };
  const home = join(root, "home");
  await troupe(["-s", "-p", "hello"], { cwd: root, home, environment });
  const runtime = createRuntime({ environment, home });
  const session = await runtime.createSession({ cwd: root });
  await session.sendAndWait({ prompt: "hello" });
  await session.close();
  await runtime.close();
  const [built = [], sources = []] = server.requests.flatMap(({ request }) => (request ? [request.tools] : []));
  expect(built.length).toBeGreaterThan(20);
  const names = new Set(built.map(({ name }) => name));
  expect(built).toEqual(sources.filter(({ name }) => names.has(name)));
});

function fits(name: string, rule: string | RegExp): boolean {
  return typeof rule === "string" ? name === rule : rule.test(name);
}

/** A module in a pack is a function that bears its name. */
function modulesRun(coverage: string): string[] {
  return readdirSync(coverage).flatMap((file) => {
    const { result } = JSON.parse(readFileSync(join(coverage, file), "utf8")) as {
      result: { url: string; functions: { functionName: string; ranges: { count: number }[] }[] }[];
    };
    return result
      .filter(({ url }) => url.includes("/dist/cli/"))
      .flatMap(({ functions }) => functions)
      .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
      .map(({ functionName }) => functionName);
  });
}
