import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type MemoryContext, memoryCommand } from "../../src/cli/commands/memory.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { given } from "./command-line.ts";
import { draft, KNOWN_SECRET, localAt, ports, putFile, SHAPED_SECRET, toldAt } from "./support.ts";

function stage(folder: TempFolder, changes: Partial<MemoryContext> = {}) {
  const memory = localAt(folder.at("home"), folder.at("work"));
  const printed: string[] = [];
  const said: string[] = [];
  const around: MemoryContext = {
    environment: {},
    cwd: folder.at("work"),
    stateRoot: folder.at("home"),
    isTrusted: false,
    ports: ports(),
    print: async (text) => void printed.push(text),
    say: (text) => void said.push(text),
    ...changes,
  };
  const run = async (words: string, flags: Record<string, string | true> = {}): Promise<string> => {
    printed.length = 0;
    await memoryCommand(given(words, flags), around);
    return printed.join("");
  };
  return { memory, run, said, around };
}

const idIn = (text: string): string => /: ([\w-]+)/.exec(text)?.[1] ?? "";

test("a person can add, find, change and remove a fact, and see everything that happened to it", async () => {
  await using folder = await tempFolder();
  const { run, memory } = stage(folder);
  const id = idIn(await run('add "Use tabs."', { subject: "style", citations: ".editorconfig", expires: "90" }));
  expect(await run("list")).toMatch(
    new RegExp(`^${id}  accepted .*repository.*person.*today.*0 uses, \\+0 -0\\n.*style: Use tabs\\.\\n$`),
  );
  expect(await toldAt(memory)).toContain("Use tabs.");
  await run(`edit ${id.slice(0, 5)} "Use spaces."`, { expires: "never" });
  expect(await toldAt(memory)).toContain("Use spaces.");
  await run(`remove ${id}`);
  expect(await toldAt(memory)).toBe("");
  expect(await run("list")).toBe("Nothing is remembered here.\n");
  expect(await run("list", { all: true })).toContain("retracted");
  const shown = await run(`show ${id}`);
  for (const action of ["add", "edit", "remove"]) expect(shown).toMatch(new RegExp(`  ${action}\\s+person  \\(`));
  expect(JSON.parse(await run(`show ${id}`, { json: true }))).toMatchObject({
    id,
    status: "retracted",
    history: [{}, {}, {}],
  });
  await run("undo");
  expect(await toldAt(memory)).toContain("Use spaces.");
});

test("proposals of agents wait in the list until a person accepts them, one by one or all at once", async () => {
  await using folder = await tempFolder();
  const { run, memory, around } = stage(folder);
  const first = await memory.store(draft("Use tabs."));
  await memory.store(draft("Use npm."));
  expect(await run("list")).toContain("2 proposals: no session is told until you accept");
  expect(await run(`accept ${first.id}`)).toBe(`Accepted: ${first.id}\n`);
  expect(await toldAt(memory)).not.toContain("npm");
  await expect(run("accept", { all: true })).rejects.toThrow("There is no terminal to ask on. To confirm, add --yes.");
  const asked = stage(folder, { ...around, ask: async () => false });
  await expect(asked.run("accept", { all: true })).rejects.toThrow("Nothing was changed.");
  await run("accept", { all: true, yes: true });
  expect(await toldAt(memory)).toContain("Use npm.");
});

test("scopes are separate, and a fact that replaces another retracts it", async () => {
  await using folder = await tempFolder();
  const { run, memory } = stage(folder);
  const old = idIn(await run('add "Use tabs."'));
  await run('add "I like tea."', { scope: "user" });
  await run('add "Use spaces."', { supersedes: old });
  const list = JSON.parse(await run("list", { json: true }));
  expect(list.map((fact: { fact: string; scope: string }) => [fact.fact, fact.scope])).toEqual([
    ["I like tea.", "user"],
    ["Use spaces.", "repository"],
  ]);
  expect(await run("list", { scope: "user" })).not.toContain("spaces");
  expect(await toldAt(memory)).not.toContain("tabs");
});

test("exported facts are imported as proposals, and secrets are neither exported nor imported", async () => {
  await using folder = await tempFolder();
  const { run, said, around } = stage(folder);
  await run('add "Use tabs."');
  await run('add "The word is xyzzy-plugh-9931-frobnicate."');
  await expect(run(`add "Log in with ${SHAPED_SECRET} please."`)).rejects.toThrow("it contains a secret");
  const before = await run("export");
  expect(
    before
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).fact),
  ).toEqual(["Use tabs.", "The word is xyzzy-plugh-9931-frobnicate."]);
  around.ports.redactor.add("xyzzy-plugh-9931-frobnicate", "LATE_SECRET");
  const exported = await run("export");
  expect(exported).not.toContain("xyzzy");
  expect(said.at(-1)).toMatch(/^left out, because they hold a secret: [\w-]+$/);

  const other = stage(folder, { cwd: folder.path, stateRoot: folder.at("home-2") });
  const evil = JSON.stringify({ subject: "s", fact: `Use ${KNOWN_SECRET} for all.`, citations: "", reason: "" });
  writeFileSync(folder.at("facts.jsonl"), `${exported}${evil}\n{"torn`);
  expect(await other.run(`import ${folder.at("facts.jsonl")}`)).toMatch(/^1 proposal from .*, 0 known before\.\n$/);
  expect(other.said).toEqual([
    expect.stringContaining("1 line could not be understood"),
    '"s" was left out: it contains a secret',
  ]);
  expect(await other.run("list")).toMatch(/proposed {3}repository {2}import/);
  expect(await other.run(`import ${folder.at("facts.jsonl")}`)).toContain("0 proposals");
  expect(JSON.stringify(await folder.tree())).not.toContain(SHAPED_SECRET);
  await other.run("undo");
  expect(await other.run("list")).toBe("Nothing is remembered here.\n");
});

test("an export is the same, byte for byte, after a change and its undo", async () => {
  await using folder = await tempFolder();
  const { run } = stage(folder);
  const id = idIn(await run('add "Use tabs."'));
  await run('add "Use npm."');
  const before = await run("export");
  for (const change of [`edit ${id} "Use spaces."`, `remove ${id}`, 'add "Use bun."']) {
    await run(change);
    expect(await run("export")).not.toBe(before);
    expect(await run("undo")).toMatch(/^Undone: (edit|remove|add) of /);
    expect(await run("export")).toBe(before);
  }
});

test("a purge asks first, leaves no trace in the memory, and names the sessions that contain the words", async () => {
  await using folder = await tempFolder();
  const { run, said } = stage(folder);
  const id = idIn(await run("add \"The code is on 'page' nine.\""));
  const args = JSON.stringify({ fact: "The code is on 'page' nine." });
  putFile(folder.at("home/session-state/one/events.jsonl"), `${JSON.stringify({ arguments: args })}\n`);
  putFile(folder.at("home/session-state/two/events.jsonl"), "nothing of interest\n");
  await expect(run(`remove ${id}`, { purge: true })).rejects.toThrow("There is no terminal to ask on");
  expect(await run(`remove ${id}`, { purge: true, yes: true })).toBe(`Purged: ${id}\n`);
  const files = Object.entries(await folder.tree()).filter(([path]) => !path.includes("session-state"));
  expect(JSON.stringify(files)).not.toContain("page");
  expect(said).toEqual(["its words stand in the log of a session too: troupe sessions delete one"]);
  await expect(run("undo")).rejects.toThrow("There is nothing to undo.");
});

test("an agent cannot decide through its shell, and invalid arguments are an error", async () => {
  await using folder = await tempFolder();
  const inShell = stage(folder, { environment: { TROUPE_SHELL: "1" } });
  for (const words of ['add "x y"', "accept abcd", "undo", "remove abcd"])
    await expect(inShell.run(words)).rejects.toThrow("A command of an agent cannot change the memory");
  expect(await inShell.run("list")).toBe("Nothing is remembered here.\n");
  const { run } = stage(folder);
  await expect(run("frobnicate")).rejects.toThrow("Unknown: troupe memory frobnicate. Use one of list, show,");
  await expect(run("constructor")).rejects.toThrow("Unknown: troupe memory constructor");
  await expect(run("show")).rejects.toThrow("Usage: troupe memory show <id>");
  await expect(run("show nothing")).rejects.toThrow("There is no fact nothing.");
  await expect(run("import /nowhere/at/all")).rejects.toThrow("There is no file");
});
