/** `troupe config` of the built program, on real settings files. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { type TroupeOptions, troupe } from "../support/troupe.ts";

async function desk(settings?: string) {
  const folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path, { mode: 0o700 });
  const file = join(home, "settings.json");
  if (settings !== undefined) writeFileSync(file, settings);
  return {
    cwd,
    file,
    run: (args: string, more: Partial<TroupeOptions> = {}) =>
      troupe(["config", ...(args.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ""))], {
        ...{ cwd, home, ...more },
      }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

it("troupe config sets, gets, lists and unsets values, each of its type", async () => {
  await using at = await desk();
  expect(await at.run("list")).toMatchObject({ code: 0, stdout: expect.stringContaining("No settings.") });
  expect(await at.run("set model openai/gpt-5.2")).toMatchObject({ code: 0, stderr: "" });
  expect(await at.run("set stream true")).toMatchObject({ code: 0 });
  expect(await at.run("set permissions.allow 'write(src)' 'shell(npm test)'")).toMatchObject({ code: 0 });
  expect(await at.run("set permissions.deny 'write(package.json)'")).toMatchObject({ code: 0 });
  expect(await at.run("set enabledFeatureFlags.MCP_TASKS false")).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(at.file, "utf8"))).toEqual({
    model: "openai/gpt-5.2",
    stream: true,
    permissions: { allow: ["write(src)", "shell(npm test)"], deny: ["write(package.json)"] },
    enabledFeatureFlags: { MCP_TASKS: false },
  });
  expect(await at.run("get model")).toEqual({ code: 0, stdout: "openai/gpt-5.2\n", stderr: "" });
  expect(JSON.parse((await at.run("get permissions.allow")).stdout)).toEqual(["write(src)", "shell(npm test)"]);
  expect(JSON.parse((await at.run("list --json")).stdout)).toContainEqual({
    ...{ key: "enabledFeatureFlags.MCP_TASKS", value: false, scope: "user", file: at.file },
  });
  expect(await at.run("unset enabledFeatureFlags.MCP_TASKS")).toMatchObject({ code: 0 });
  expect(readFileSync(at.file, "utf8")).not.toContain("enabledFeatureFlags");
  expect(await at.run("unset enabledFeatureFlags.MCP_TASKS")).toMatchObject({ code: 1, stdout: "" });
  expect(await at.run("get effortLevel")).toMatchObject({
    code: 1,
    stderr: "troupe: effortLevel is not set. See: troupe config list\n",
  });
});

it("troupe config keeps comments, order and format of the file", async () => {
  const text = '{\n  // the model at work\n  "model": "a/b", // for now\n  "stream": true\n}\n';
  await using at = await desk(text);
  await at.run("set model c/d");
  await at.run("set logLevel info");
  expect(readFileSync(at.file, "utf8")).toBe(
    '{\n  // the model at work\n  "model": "c/d", // for now\n  "stream": true,\n  "logLevel": "info"\n}\n',
  );
});

it("troupe config refuses unknown keys with the nearest one, and values of a wrong type, and changes nothing", async () => {
  await using at = await desk();
  expect(await at.run("set modle x")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Did you mean model?"),
  });
  expect(await at.run("set permissions.alow x")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Did you mean permissions.allow?"),
  });
  expect(await at.run("set effortLevel enormous")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('effortLevel cannot be "enormous".'),
  });
  expect(await at.run("set stream maybe")).toMatchObject({ code: 2 });
  expect(existsSync(at.file)).toBe(false);
});

it("troupe config names the line of a broken file, and does not change it", async () => {
  const text = '{\n  "model": \n}\n';
  await using at = await desk(text);
  expect(await at.run("set stream true")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("settings.json:3:"),
  });
  expect(readFileSync(at.file, "utf8")).toBe(text);
});

it("troupe config masks secrets", async () => {
  const server = { command: "x", env: { TOKEN: "hunter2", OTHER: "$VARIABLE" } };
  await using at = await desk(JSON.stringify({ mcpServers: { files: server }, webSearch: { apiKey: "hunter3" } }));
  const all = [
    await at.run("list"),
    await at.run("list --json"),
    await at.run("get webSearch.apiKey"),
    await at.run("get mcpServers --user"),
  ];
  for (const { code, stdout } of all) {
    expect(code).toBe(0);
    expect(stdout).not.toContain("hunter");
  }
  expect(all[0]?.stdout).toContain('"$VARIABLE"');
});

it("troupe config writes project and user files in a project, and reports settings without effect there", async () => {
  await using at = await desk();
  const shared = join(at.cwd, ".troupe", "settings.json");
  const own = join(at.cwd, ".troupe", "settings.local.json");
  expect((await at.run("path --project")).stdout).toBe(`${shared}\n`);
  expect(await at.run("set permissions.deny 'write(package.json)' --project")).toMatchObject({ code: 0 });
  const loosened = await at.run("set permissions.allow write --local");
  expect(loosened).toMatchObject({ code: 0, stderr: expect.stringContaining("troupe trust") });
  expect(JSON.parse(readFileSync(shared, "utf8"))).toEqual({ permissions: { deny: ["write(package.json)"] } });
  expect(JSON.parse(readFileSync(own, "utf8"))).toEqual({ permissions: { allow: ["write"] } });
  expect(await at.run("get permissions.deny")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("package.json"),
  });
  expect(await at.run("get permissions.allow")).toMatchObject({ code: 1 });
  expect(await at.run("list --user --local")).toMatchObject({ code: 2 });
});

it("troupe config does not change the user's file through a link of the project", async () => {
  await using at = await desk('{"model":"mine"}');
  mkdirSync(join(at.cwd, ".troupe"));
  symlinkSync(at.file, join(at.cwd, ".troupe", "settings.json"));
  symlinkSync(at.file, join(at.cwd, ".troupe", "settings.local.json"));
  for (const change of ["set model other --project", "set model other --local", "unset model --project"]) {
    expect(await at.run(change)).toMatchObject({ code: 2, stderr: expect.stringContaining(`leads outside ${at.cwd}`) });
  }
  expect(readFileSync(at.file, "utf8")).toBe('{"model":"mine"}');
});

it("troupe config is refused inside a command of an agent", async () => {
  await using at = await desk();
  const environment = { TROUPE_SHELL: "1" };
  expect(await at.run("set stream true", { environment })).toMatchObject({ code: 1 });
  expect(await at.run("list", { environment })).toMatchObject({ code: 0 });
  expect(existsSync(at.file)).toBe(false);
});

it("troupe config changes no project settings in the folder above the state folder", async () => {
  await using folder = await tempFolder();
  const home = join(folder.path, ".troupe");
  mkdirSync(home, { mode: 0o700 });
  const settings = '{ "model": "a/b" }\n';
  writeFileSync(join(home, "settings.json"), settings);
  const run = (...args: string[]) => troupe(["config", ...args], { cwd: folder.path, home });
  for (const scope of ["--project", "--local"]) {
    const { code, stdout, stderr } = await run("set", "model", "c/d", scope);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("holds your own settings, not those of a project. Use --user, or run it in a repository.");
  }
  expect(readFileSync(join(home, "settings.json"), "utf8")).toBe(settings);
  expect(existsSync(join(home, "settings.local.json"))).toBe(false);
  expect(JSON.parse((await run("list", "--json")).stdout)).toMatchObject([{ key: "model", scope: "user" }]);
});
