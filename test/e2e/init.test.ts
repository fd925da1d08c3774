/** `troupe init` of the built program, on repositories of several kinds. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { modelServer, says } from "../../src/testing/index.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { onTerminal } from "../support/terminal.ts";
import { script, type TroupeOptions, troupe } from "../support/troupe.ts";

async function repository(files: Readonly<Record<string, string>>) {
  const folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path, { mode: 0o700 });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), text);
  }
  return {
    home,
    cwd,
    file: join(cwd, "AGENTS.md"),
    git: (...args: string[]) => execFileSync("git", args, { cwd, env: { PATH: process.env.PATH, HOME: home } }),
    run: (args: readonly string[], more: Partial<TroupeOptions> = {}) =>
      troupe(["init", ...args], { cwd, home, ...more }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const node = {
  "package.json": JSON.stringify({
    name: "garden",
    description: "Waters plants.",
    packageManager: "pnpm@9.0.0",
    scripts: { prepare: "husky", lint: "eslint .", test: "vitest run", deploy: "./deploy.sh" },
    devDependencies: { vitest: "1.0.0" },
  }),
  "pnpm-lock.yaml": "",
  "eslint.config.js": "export default [];\n",
  "src/pumps/pumps.ts": "/** Pumps, and the valves behind them. */\nexport const pumps = [];\n",
  "src/pumps/motor.ts": "export const motor = 1;\n",
  "src/water/water.ts": "/** How much water a plant needs. */\nexport const water = 1;\n",
  "test/pumps.test.ts": "import '../src/pumps/pumps.ts';\n",
  ".github/workflows/ci.yml": "on: push\n",
};

describe("the search for commands, layout and conventions", () => {
  it("the survey of troupe init describes a Node project", async () => {
    await using at = await repository(node);
    const { code, stdout } = await at.run(["--print"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^# garden\n\nWaters plants\.\n\n## Commands\n/);
    for (const line of ["pnpm install", "pnpm test ", "pnpm run lint", "pnpm run deploy", "npx vitest run <file>"])
      expect(stdout).toContain(`\n${line}`);
    expect(stdout).not.toContain("husky");
    expect(stdout).toContain("`src/pumps`: Pumps, and the valves behind them.");
    expect(stdout).toContain("- `eslint.config.js`: ESLint");
    expect(stdout).toContain("1 test file; most lie in `test`");
    expect(existsSync(at.file)).toBe(false);
  });

  it.each([
    ["pyproject.toml", '[project]\nname = "garden"\n[tool.pytest.ini_options]\n', ["pytest <file>::<test>"]],
    ["Cargo.toml", '[package]\nname = "garden"\n', ["cargo build", "cargo test"]],
    ["go.mod", "module example.com/garden\n", ["go build ./...", "go test ./..."]],
    ["Makefile", "test:\n\techo\n", ["make test"]],
  ])("the survey of troupe init describes a project with %s", async (name, text, commands) => {
    await using at = await repository({ [name]: text });
    const { stdout } = await at.run(["--print"]);
    for (const command of commands) expect(stdout).toContain(`\n${command}`);
  });

  it("the survey of troupe init describes the whole repository from a folder in it, without ignored files", async () => {
    await using at = await repository({ ...node, ".gitignore": "secret\n", "secret/plan.ts": "/** Hidden. */\n" });
    at.git("init", "-q");
    const { stdout } = await at.run(["--dry-run"], { cwd: join(at.cwd, "src") });
    expect(stdout).not.toContain("secret");
    expect(stdout).toContain(".github/workflows/ci.yml");
    const { code } = await at.run([], { cwd: join(at.cwd, "src") });
    expect({ code, isAtRoot: existsSync(at.file) }).toEqual({ code: 0, isAtRoot: true });
  });

  it("the survey of troupe init describes an empty folder", async () => {
    await using at = await repository({});
    expect(await at.run(["--print"])).toEqual({ code: 0, stdout: "# project\n", stderr: "" });
  });
});

it("troupe init writes the file once, and replaces it only with --force or consent", async () => {
  await using at = await repository(node);
  expect(await at.run([])).toMatchObject({ code: 0, stdout: `Wrote ${at.file}\n` });
  const first = readFileSync(at.file, "utf8");
  expect(first).toContain("# garden");
  writeFileSync(at.file, "mine\n");
  expect(await at.run([])).toMatchObject({ code: 1, stderr: expect.stringContaining("exists and was not changed") });
  const no = await onTerminal(["init"], { ...at, answers: [["[y/N]", "n"]] });
  expect(no.code).toBe(1);
  expect(readFileSync(at.file, "utf8")).toBe("mine\n");
  const yes = await onTerminal(["init"], { ...at, answers: [["[y/N]", "y"]] });
  expect({ code: yes.code, text: readFileSync(at.file, "utf8") }).toEqual({ code: 0, text: first });
  writeFileSync(at.file, "mine\n");
  expect(await at.run(["--force"])).toMatchObject({ code: 0 });
  expect(readFileSync(at.file, "utf8")).toBe(first);
});

describe("troupe init with a model", () => {
  it("troupe init writes the answer of the model, which had the draft and only tools that read", async () => {
    await using at = await repository(node);
    await using server = await modelServer({ handler: () => says("```markdown\n# Garden\n\nBetter.\n```") });
    const environment = { TROUPE_BASE_URL: server.baseUrl, TROUPE_MODEL: "any" };
    expect(await at.run(["--model", "custom/any"], { environment })).toMatchObject({ code: 0 });
    expect(readFileSync(at.file, "utf8")).toBe("# Garden\n\nBetter.\n");
    const [request] = server.requests.flatMap((one) => one.request ?? []);
    expect(JSON.stringify(request?.messages)).toContain("Waters plants.");
    expect(request?.tools.map(({ name }) => name).sort()).toEqual(["glob", "grep", "view"]);
  });

  it("troupe init asks before it uses the configured model", async () => {
    await using at = await repository(node);
    await using server = await modelServer({ handler: () => says("# Garden") });
    const environment = { TROUPE_BASE_URL: server.baseUrl, TROUPE_MODEL: "any" };
    const no = await onTerminal(["init"], { ...at, environment, answers: [["improve the draft? [y/N]", "n"]] });
    expect({ code: no.code, requests: server.requests.length }).toEqual({ code: 0, requests: 0 });
    expect(readFileSync(at.file, "utf8")).toContain("# garden\n");
  });

  it("troupe init keeps the draft if the answer is not such a file", async () => {
    await using at = await repository(node);
    const model = script(at.home, [{ say: "I would rather not." }]);
    const { code, stderr } = await at.run(["--model", model]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("cannot be used") });
    expect(readFileSync(at.file, "utf8")).toContain("Waters plants.");
  });
});
