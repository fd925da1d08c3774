import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { skillLocations } from "../../src/context/skills/locations.ts";
import { discoverSkills, skillsLoaded } from "../../src/context/skills/skills.ts";
import { checkEvent } from "../../src/protocol/event.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { leastProcessorTime } from "../support/work.ts";
import { skill, skillStage } from "./stage.ts";

const names = (found: { skills: readonly { name: string; source: string }[] }): string[] =>
  found.skills.map(({ name, source }) => `${name} (${source})`);

describe("the search for skills", () => {
  it("the search for skills follows the order of locations, and the first of two equal names wins", async () => {
    await using stage = await skillStage({
      "work/.github/skills/shared/SKILL.md": skill("shared", "of the project"),
      "work/.claude/skills/claude/SKILL.md": skill("claude"),
      "work/.agents/skills/agents/SKILL.md": skill("agents"),
      "work/.troupe/skills/own/SKILL.md": skill("own"),
      "home/.troupe/skills/shared/SKILL.md": skill("Shared", "of the person"),
      "home/.troupe/skills/mine/SKILL.md": skill("mine"),
      "home/.agents/skills/common/SKILL.md": skill("common"),
      "extra/listed/SKILL.md": skill("listed"),
      "variable/set/SKILL.md": skill("set"),
      "other/.github/skills/added/SKILL.md": skill("added"),
      "plugin/skills/plugged/SKILL.md": skill("plugged"),
      "plugin/commands/tidy.md": "Tidy up.\n",
      "work/.claude/commands/review.md": "---\nargument-hint: [file]\n---\nReview the file.\n",
      "work/.claude/commands/mine.md": "Hidden by the skill.\n",
    });
    const plugin = { name: "plug", version: "1.2.0", skillFolders: [stage.at("plugin/skills")] };
    const found = await stage.find({
      plugins: [{ ...plugin, commandFolders: [stage.at("plugin/commands")] }],
      skillDirectories: ["../extra"],
      environment: { COPILOT_SKILLS_DIRS: stage.at("variable") },
      addedDirectories: [stage.at("other")],
    });
    expect(names(found)).toEqual([
      "own (project)",
      "shared (project)",
      "agents (project)",
      "claude (project)",
      "mine (personal-copilot)",
      "common (personal-agents)",
      "plugged (plugin)",
      "set (custom)",
      "listed (custom)",
      "added (custom)",
      "review (project)",
      "tidy (plugin)",
    ]);
    expect(found.notices.map(({ kind }) => kind)).toEqual(["shadowed"]);
    expect(found.skills.find(({ name }) => name === "plugged")).toMatchObject({
      pluginName: "plug",
      pluginVersion: "1.2.0",
      scope: "user",
    });
    expect(found.skills.find(({ name }) => name === "added")).toMatchObject({ scope: "workspace" });
    expect(found.skills.find(({ name }) => name === "review")).toMatchObject({
      form: "command",
      description: "Review the file.",
      argumentHint: "[file]",
    });
  });

  it("the search for skills includes parent folders as inherited, up to the root of the repository and not above", async () => {
    await using stage = await skillStage({
      ".github/skills/above/SKILL.md": skill("above"),
      "work/.github/skills/top/SKILL.md": skill("top"),
      "work/a/.github/skills/middle/SKILL.md": skill("middle"),
      "work/a/b/.github/skills/near/SKILL.md": skill("near"),
    });
    expect(names(await stage.find({ cwd: stage.at("work/a/b") }))).toEqual([
      "near (project)",
      "middle (inherited)",
      "top (inherited)",
    ]);
  });

  it("the search for skills counts a home folder that is the workspace as the user's own", async () => {
    await using stage = await skillStage({ "home/.troupe/skills/mine/SKILL.md": skill("mine") });
    const home = stage.at("home");
    const { skills } = await stage.find({ cwd: home, gitRoot: home });
    expect(skills).toMatchObject([{ name: "mine", scope: "user", source: "personal-copilot" }]);
  });

  it("SDK-12 the search for skills accepts a skill folder itself when the user names it", async () => {
    await using stage = await skillStage({ "one/SKILL.md": skill("one") });
    expect(names(await stage.find({ skillDirectories: [stage.at("one")] }))).toEqual(["one (custom)"]);
  });
});

describe("a skill", () => {
  it("a skill has every field of its file, and the shape of the wire", async () => {
    await using stage = await skillStage({
      "home/.troupe/skills/release/SKILL.md": `---
name: Release notes
description: >-
  Writes the notes
  of a release.
allowed-tools: Bash(git log:*), Read
user-invocable: false
disable-model-invocation: true
argument-hint: "<version>"
---
Body.
`,
    });
    const directory = stage.at("home/.troupe/skills/release");
    const { skills, notices } = await stage.find({ disabled: ["release NOTES"] });
    expect(notices).toEqual([]);
    expect(skills).toEqual([
      {
        name: "Release notes",
        description: "Writes the notes of a release.",
        directory,
        path: join(directory, "SKILL.md"),
        root: stage.at("home/.troupe/skills"),
        source: "personal-copilot",
        scope: "user",
        form: "skill",
        userInvocable: false,
        modelInvocable: false,
        enabled: false,
        hasScripts: false,
        argumentHint: "<version>",
        allowedTools: ["Bash(git log:*)", "Read"],
      },
    ]);
    const data = skillsLoaded(skills);
    expect(data.skills).toMatchObject([
      { commandName: "release-notes", enabled: false, path: join(directory, "SKILL.md") },
    ]);
    const event = { id: "1", timestamp: "t", parentId: null, type: "session.skills_loaded", data };
    expect(checkEvent(event)).toMatchObject({ ok: true });
  });

  it("a skill takes its name from the folder and its description from the first paragraph", async () => {
    await using stage = await skillStage({
      "work/.github/skills/my-skill/SKILL.md": "# Title\n\nFirst words,\nmore.\n\nNot this.\n",
    });
    expect((await stage.find()).skills).toMatchObject([{ name: "my-skill", description: "First words, more." }]);
  });

  it("a skill may begin with more frontmatter than is read at first", async () => {
    const long = `${"# a comment\n".repeat(1000)}`;
    await using stage = await skillStage({ "work/.github/skills/a/SKILL.md": `---\n${long}name: late\n---\nBody.\n` });
    expect(await stage.find()).toMatchObject({ skills: [{ name: "late", description: "Body." }], notices: [] });
  });

  it("a skill is left out with a notice when it is broken, and the others load", async () => {
    await using stage = await skillStage({
      "work/.github/skills/a/SKILL.md": "---\nname: [\n---\nx\n",
      "work/.github/skills/b/SKILL.md": skill("bad/name"),
      "work/.github/skills/c/SKILL.md": skill("n".repeat(65)),
      "work/.github/skills/d/SKILL.md": "",
      "work/.github/skills/e/SKILL.md": `---\nname: e\n---\n${"x".repeat(70_000)}`,
      "work/.github/skills/f/SKILL.md/inner": "a folder where a file should be",
      "work/.github/skills/g/README.md": "no skill",
      "work/.github/skills/h/SKILL.md": skill("good"),
      "work/.github/skills/i/SKILL.md": "---\n__proto__: x\n---\nx\n",
    });
    const { skills, notices } = await stage.find();
    expect(skills.map(({ name }) => name)).toEqual(["good"]);
    expect(notices.map(({ kind, path }) => `${kind} ${path.split("/").at(-2)}`)).toEqual([
      "broken a",
      "broken b",
      "broken c",
      "broken d",
      "broken e",
      "broken i",
    ]);
  });

  it("a skill cannot be a link that leads out of its location, nor can its file or its folder", async () => {
    await using stage = await skillStage({
      "outside/SKILL.md": skill("outside"),
      "work/.github/skills/file/keep": "",
      "work/.github/skills/beside/SKILL.md": skill("beside"),
      "work/.github/skills/good/SKILL.md": skill("good"),
    });
    const at = (path: string): string => stage.at(`work/.github/skills/${path}`);
    await symlink(stage.at("outside"), at("folder"));
    await symlink(stage.at("outside/SKILL.md"), at("file/SKILL.md"));
    await symlink(stage.at("outside/SKILL.md"), at("beside/more.md"));
    await symlink(at("good"), at("inside"));
    await mkdir(stage.at("work/.claude"));
    await symlink(stage.at("outside"), stage.at("work/.claude/skills"));
    const { skills, notices } = await stage.find();
    expect(skills.map(({ name }) => name)).toEqual(["good"]);
    expect(notices.map(({ kind }) => kind)).toEqual(["refused", "broken", "broken", "refused"]);
  });

  it("a skill allows no tools when it belongs to a workspace, with a notice", async () => {
    await using stage = await skillStage({
      "work/.github/skills/a/SKILL.md": skill("a", "x", "allowed-tools: Bash\n"),
    });
    const { skills, notices } = await stage.find();
    expect(skills[0]).not.toHaveProperty("allowedTools");
    expect(notices).toMatchObject([{ kind: "tools" }]);
  });

  it("a skill is one of at most five hundred", async () => {
    const tree = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`s/s${i}/SKILL.md`, skill(`s${i}`)]));
    await using folder = await tempFolder(tree);
    const locations = [{ path: folder.at("s"), source: "custom", form: "skill" } as const];
    const { skills, notices } = await discoverSkills({ locations, limits: { maxSkills: 10 } });
    expect(skills.length).toBe(10);
    expect(notices).toMatchObject([{ kind: "limit" }]);
  });
});

describe("trust in skills", () => {
  it("trust in skills is not needed for text, but for anything that can be run", async () => {
    await using stage = await skillStage({
      "work/.github/skills/text/SKILL.md": skill("text"),
      "work/.github/skills/text/notes/more.md": "words",
      "work/.github/skills/script/SKILL.md": skill("script"),
      "work/.github/skills/script/run.py": "print(1)",
      "work/.github/skills/bit/SKILL.md": skill("bit"),
      "work/.github/skills/bit/tool": "#!/bin/sh\n",
      "home/.troupe/skills/mine/SKILL.md": skill("mine"),
      "home/.troupe/skills/mine/run.sh": "true",
    });
    await chmod(stage.at("work/.github/skills/bit/tool"), 0o755);
    const { skills, notices } = await stage.find();
    expect(skills.map(({ name, hasScripts }) => [name, hasScripts])).toEqual([
      ["text", false],
      ["mine", true],
    ]);
    expect(notices.map(({ kind }) => kind)).toEqual(["untrusted", "untrusted"]);
    for (const { message } of notices) expect(message).toContain("run: troupe trust");
  });

  it("trust in skills is needed for a skill of the workspace to hide one of the user's", async () => {
    await using stage = await skillStage({
      "work/.github/skills/same/SKILL.md": skill("same"),
      "work/.github/skills/same/run.sh": "true",
      "home/.troupe/skills/same/SKILL.md": skill("same"),
    });
    expect((await stage.find()).skills).toMatchObject([{ name: "same", scope: "user" }]);
  });

  it("trust in skills covers the scripts that the user approved: any change asks again", async () => {
    await using stage = await skillStage({
      "work/.github/skills/s/SKILL.md": skill("s"),
      "work/.github/skills/s/run.sh": "echo 1",
    });
    const seen: string[] = [];
    const collect = await stage.find({
      check: (item) => {
        seen.push(`${item.kind} ${item.digest}`);
        expect(item.shown).toContain("run.sh  (can be run)");
        return "new";
      },
    });
    expect(collect).toMatchObject({ skills: [], notices: [{ kind: "untrusted" }] });
    const check = (item: { kind: string; digest: string }) =>
      seen.includes(`${item.kind} ${item.digest}`) ? ("approved" as const) : ("changed" as const);
    expect((await stage.find({ check })).skills).toMatchObject([{ name: "s", hasScripts: true }]);
    await chmod(stage.at("work/.github/skills/s/run.sh"), 0o755);
    expect(await stage.find({ check })).toMatchObject({ skills: [], notices: [{ kind: "changed" }] });
    await chmod(stage.at("work/.github/skills/s/run.sh"), 0o644);
    await writeFile(stage.at("work/.github/skills/s/SKILL.md"), skill("s", "other words"));
    expect(await stage.find({ check })).toMatchObject({ skills: [], notices: [{ kind: "changed" }] });
  });

  it("trust in skills is requested once for a workspace that is not trusted", async () => {
    await using stage = await skillStage({
      "work/.github/skills/a/SKILL.md": skill("a"),
      "work/.github/skills/a/run.sh": "1",
      "work/.github/skills/b/SKILL.md": skill("b"),
      "work/.github/skills/b/run.sh": "1",
    });
    let asked = 0;
    const found = await stage.find({
      check: () => {
        asked++;
        return "untrusted";
      },
    });
    expect({ asked, refused: found.notices.length }).toEqual({ asked: 1, refused: 2 });
  });

  it("trust in skills cannot be given to more than can be checked", async () => {
    const many = Object.fromEntries(Array.from({ length: 230 }, (_, i) => [`work/.github/skills/many/f${i}.md`, ""]));
    await using stage = await skillStage({
      ...many,
      "work/.github/skills/many/SKILL.md": skill("many"),
      "work/.github/skills/large/SKILL.md": skill("large"),
      "work/.github/skills/large/run.sh": "#".repeat(2 * 1024 * 1024 + 1),
    });
    const { skills, notices } = await stage.find({ check: () => "approved" });
    expect(skills).toEqual([]);
    expect(notices.map(({ message }) => message)).toEqual([
      expect.stringContaining("more than 2097152 bytes"),
      expect.stringContaining("more than 200 files"),
    ]);
  });
});

test("the search for skills costs almost nothing without skills, and little with two hundred", async () => {
  const tree = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`s/s${i}/SKILL.md`, skill(`s${i}`)]));
  await using folder = await tempFolder({ ...tree, "work/a/b/keep": "" });
  const places = {
    cwd: folder.at("work/a/b"),
    gitRoot: folder.at("work"),
    stateRoot: folder.at("x"),
    home: folder.at("y"),
  };
  const none = await leastProcessorTime(() => discoverSkills({ locations: skillLocations(places) }));
  const locations = [{ path: folder.at("s"), source: "custom", form: "skill" } as const];
  const many = await leastProcessorTime(() => discoverSkills({ locations }));
  if (process.env.TROUPE_SLOW) console.log(`none ${none.toFixed(2)} ms, 200 ${many.toFixed(1)} ms`);
  // The aims are 1 ms and 60 ms; a slow machine gets some room.
  expect(none).toBeLessThan(5);
  expect(many).toBeLessThan(150);
});
