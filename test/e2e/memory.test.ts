import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { putFile, putRepository } from "../memory/support.ts";
import { script, troupe } from "../support/troupe.ts";

const stores = (fact: string) => ({
  call: {
    name: "store_memory",
    arguments: { subject: "testing", fact, citations: "package.json:12", reason: "Every session needs it." },
  },
});

it("a proposed fact is listed, accepted, shown to the next session, corrected, removed and restored", async () => {
  await using folder = await tempFolder();
  const [cwd, home] = [folder.at("work"), folder.at("home")];
  mkdirSync(cwd);
  const said: string[] = [];
  const run = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await troupe(args, { cwd, home });
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    said.push(stderr);
    return stdout;
  };
  const ask = (steps: object[], ...flags: string[]) =>
    run("-p", "go", "--model", script(folder.at("scripts"), steps), "--output-format", "json", ...flags);
  const fact = "Tests run with npm test.";

  // Off with -p unless it is asked for: the tool is not there.
  expect(await ask([stores(fact), { say: "ok" }], "--allow-all-tools")).not.toContain("Stored as a proposal");
  expect(await run("memory", "list")).toBe("Nothing is remembered here.\n");

  const flags = ["--enable-memory", "--allow-tool", "memory"];
  expect(await ask([stores(fact), { say: "ok" }], ...flags)).toContain("Stored as a proposal");
  expect(said.at(-1)).toContain("1 fact proposed to be remembered: troupe memory list");
  const [, id = ""] = /^([\w-]+) {2}proposed/.exec(await run("memory", "list")) ?? [];
  expect(await ask([{ say: "ok" }], ...flags)).not.toContain("<memories>");
  await run("memory", "accept", id);
  expect(await ask([{ say: "ok" }], ...flags)).toMatch(/<memories>.*Tests run with npm test\..*<\/memories>/);
  const shown = await run("memory", "show", id);
  for (const words of ["author      agent", "source      tool ", "used        1 time", "accept"]) {
    expect(shown).toContain(words);
  }
  await run("memory", "edit", id, "Tests run with npm run test.");
  const exported = await run("memory", "export");
  await run("memory", "remove", id);
  expect(await run("memory", "list")).toBe("Nothing is remembered here.\n");
  await run("memory", "undo");
  expect(await run("memory", "export")).toBe(exported);
  expect(JSON.parse(exported)).toMatchObject({ id, fact: "Tests run with npm run test.", uses: 1 });
});

it("troupe memory lists what a session stored under the trust of one run, and reports settings of a service", async () => {
  await using folder = await tempFolder();
  const [cwd, home] = [folder.at("work"), folder.at("home")];
  putRepository(cwd, "https://example.com/me/thing.git");
  const model = script(folder.at("scripts"), [stores("Use tabs."), { say: "ok" }]);
  const flags = ["--enable-memory", "--allow-tool", "memory", "--trust-folder"];
  await troupe(["-p", "go", "--model", model, ...flags], { cwd, home });
  expect((await troupe(["memory", "list"], { cwd, home })).stdout).toContain("testing: Use tabs.");
  putFile(join(home, "settings.json"), JSON.stringify({ memory: { store: "service", url: "https://memory.example" } }));
  const { stdout, stderr } = await troupe(["memory", "list"], { cwd, home });
  expect(stderr).toContain("sessions keep their facts at https://memory.example; what follows is kept here");
  expect(stdout).toContain("Use tabs.");
});
