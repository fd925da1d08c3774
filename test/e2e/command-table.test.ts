/** Help, flags and suggestions of the built program, all drawn from the table of commands. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { commands } from "../../src/cli/command-list.ts";
import { options } from "../../src/cli/options.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { type Finished, troupe } from "../support/troupe.ts";

let folder: TempFolder;
let run: (...args: string[]) => Promise<Finished>;

beforeAll(async () => {
  folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path);
  run = (...args) => troupe(args, { cwd, home });
});
afterAll(() => folder[Symbol.asyncDispose]());

it("troupe shows the help of a command with --help, help before it and help after it", async () => {
  const [flag, before, after] = [
    await run("tasks", "merge", "--help"),
    await run("help", "tasks", "merge"),
    await run("tasks", "merge", "help"),
  ];
  expect(flag).toMatchObject({ code: 0, stderr: "" });
  expect(flag.stdout).toContain("troupe tasks merge <id>");
  expect(before).toEqual(flag);
  expect(after).toEqual({ code: 0, stdout: flag.stdout, stderr: "" });
  const whole = await run("tasks", "--help");
  expect(whole.stdout.indexOf("Examples:")).toBeLessThan(whole.stdout.indexOf("troupe tasks discard"));
  expect(await run("tasks", "help")).toEqual(whole);
});

it("troupe shows topics, and suggests the nearest word", async () => {
  expect((await run("help", "permissions")).stdout).toContain("shell(npm test)");
  expect((await run("help", "exit-codes")).stdout).toContain("| 130 |");
  const models = (await run("help", "models")).stdout;
  expect(models).toContain("troupe models [flags]");
  expect(models).toContain("TROUPE_BASE_URL");
  expect(await run("help", "permisions")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Did you mean troupe help permissions?"),
  });
  expect(await run("help", "tasks", "mrege")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Did you mean merge?"),
  });
  expect(await run("seesions")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Did you mean troupe sessions?"),
  });
});

it("troupe refuses a flag that the command does not take, and names it", async () => {
  expect(await run("sessions", "list", "--purge")).toEqual({
    code: 2,
    stdout: "",
    stderr:
      "troupe: troupe sessions list does not take --purge. It takes --here, --limit, --json, --database. " +
      "See `troupe sessions list --help`.\n",
  });
  expect(await run("diff", "--model", "understudy")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("troupe diff does not take --model."),
  });
  expect(await run("-p", "hello", "--purge")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--purge is a flag of a command"),
  });
});

it("troupe takes every flag that the help of a command lists", async () => {
  // Flags are checked before anything else happens, so an unknown id shows that the check has passed.
  const merge = commands.find(({ name }) => name === "tasks")?.subcommands?.find(({ name }) => name === "merge");
  const flags = Object.keys(merge?.flags ?? {}).flatMap((name) => {
    const takesValue = options.find((option) => option.name === name)?.value !== undefined;
    return takesValue ? [`--${name}`, "x"] : [`--${name}`];
  });
  const { code, stderr } = await run("tasks", "merge", "nobody", ...flags);
  expect(code).not.toBe(0);
  expect(stderr).not.toContain("does not take");
});

it("troupe names the help of the command in a usage error", async () => {
  expect((await run("sessions", "show")).stderr).toContain("See `troupe sessions show --help`.");
});

it("troupe prints a man page", async () => {
  const { code, stdout } = await run("help", "--man");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\.TH TROUPE 1 /);
});
