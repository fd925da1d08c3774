import { rm, symlink, writeFile } from "node:fs/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allowedToolRules } from "../../src/context/skills/allowed-tools.ts";
import { loadSkill, skillContext, skillPort } from "../../src/context/skills/load-skill.ts";
import { checkEvent } from "../../src/protocol/event.ts";
import { skillTool } from "../../src/tools/skill.ts";
import { call, contextFor, failureOf } from "../tools/workspace.ts";
import { type SkillStage, skill, skillStage } from "./stage.ts";

const WIRE_SKILL = `---
name: test-skill
description: A test skill that adds a marker to responses
---

# Test Skill Instructions

IMPORTANT: include the marker.
`;

async function toolOf(stage: SkillStage, disabled: string[] = []) {
  const { skills } = await stage.find({ skillDirectories: [stage.at("given")], disabled });
  return skillTool(skillPort(() => skills));
}

describe("the skill tool", () => {
  it("the skill tool has the answers, texts and reports of the wire contract, exactly", async () => {
    await using stage = await skillStage({ "given/test-skill/SKILL.md": WIRE_SKILL });
    const directory = stage.at("given/test-skill");
    const result = await call(await toolOf(stage), { skill: "test-skill" }, contextFor("/"));
    const body = "# Test Skill Instructions\n\nIMPORTANT: include the marker.\n";
    expect(result).toEqual({
      content: 'Skill "test-skill" loaded successfully. Follow the instructions in the skill context.',
      messages: [
        {
          content: `<skill-context name="test-skill">\nBase directory for this skill: ${directory}\n\n${body}\n</skill-context>`,
          source: "skill-test-skill",
        },
      ],
      skillInvoked: {
        name: "test-skill",
        path: `${directory}/SKILL.md`,
        content: body,
        description: "A test skill that adds a marker to responses",
        source: "custom",
        trigger: "agent-invoked",
      },
    });
    const event = { id: "1", timestamp: "t", parentId: null, type: "skill.invoked", data: result.skillInvoked };
    expect(checkEvent(event)).toMatchObject({ ok: true });
  });

  it("the skill tool lists loadable skills within four thousand characters, and counts the others", async () => {
    const tree = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`given/s${i}/SKILL.md`, skill(`s${i}`, "d".repeat(150))]),
    );
    await using stage = await skillStage({
      ...tree,
      "given/aaa/SKILL.md": skill("aaa", "Off"),
      "given/aab/SKILL.md": skill("aab", "People only", "disable-model-invocation: true\n"),
      "given/aac/SKILL.md": skill("aac", "Shown first"),
    });
    const { description } = await toolOf(stage, ["aaa"]);
    const [head = "", ...lines] = description.split("\n- ");
    expect(head.length).toBeLessThanOrEqual(1200);
    expect(lines[0]).toBe("aac: Shown first");
    expect(lines.at(-1)).toBe(`and ${61 - (lines.length - 1)} more, not listed here; the user may name one`);
    expect(description.length - head.length).toBeLessThanOrEqual(4100);
  });

  it("the skill tool suggests the nearest skill, and says why a skill cannot be loaded", async () => {
    await using stage = await skillStage({
      "given/pdf/SKILL.md": skill("pdf-forms"),
      "given/off/SKILL.md": skill("off"),
      "given/people/SKILL.md": skill("people", "x", "disable-model-invocation: true\n"),
    });
    const tool = await toolOf(stage, ["off"]);
    const failure = async (name: string) => (await failureOf(tool, { skill: name }, contextFor("/"))).message;
    expect(await failure("pdf-from")).toBe('There is no skill called "pdf-from". Did you mean "pdf-forms"?');
    expect(await failure("zzzzzz")).toBe('There is no skill called "zzzzzz". There are: pdf-forms.');
    expect(await failure("off")).toContain('The skill "off" is switched off.');
    expect(await failure("people")).toContain('The skill "people" can be started only by the user.');
    await rm(stage.at("given/pdf"), { recursive: true });
    expect(await failure("pdf-forms")).toMatch(/^The skill pdf-forms cannot be read: .*SKILL\.md is gone\.$/);
  });

  it("the skill tool is found in any spelling", async () => {
    await using stage = await skillStage({ "given/a/SKILL.md": skill("Release notes") });
    const result = await call(await toolOf(stage), { skill: "release-notes" }, contextFor("/"));
    expect(result.skillInvoked?.name).toBe("Release notes");
  });
});

describe("the context of a skill", () => {
  it("the context of a skill names the files beside it, fifty at most", async () => {
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`given/many/f${100 + i}.md`, ""]));
    await using stage = await skillStage({
      ...many,
      "given/many/SKILL.md": skill("many"),
      "given/few/SKILL.md": skill("few"),
      "given/few/docs/a.md": "",
      "given/few/b\nc.md": "",
    });
    const { skills } = await stage.find({ skillDirectories: [stage.at("given")] });
    const [few, many_] = await Promise.all(skills.map((one) => loadSkill(one, "user-invoked")));
    expect(few?.context).toContain(`${stage.at("given/few")}\nFiles beside it: "b\\nc.md", docs/a.md\n\n# few\n`);
    expect(many_?.context).toMatch(/\nFiles beside it: f100\.md, .*, f149\.md and 10 more files\n\n# many\n/);
  });

  it("the context of a skill cannot be closed by the text of the skill", async () => {
    await using stage = await skillStage({ "given/a/SKILL.md": skill("a") });
    const { skills } = await stage.find({ skillDirectories: [stage.at("given")] });
    const [one] = skills;
    if (one === undefined) throw new Error("no skill");
    const piece = fc.constantFrom(
      "</skill-context>",
      "</SKILL-CONTEXT >",
      "< /skill-context>",
      "<skill-context",
      "\n",
      "</",
      "x",
      "<",
      ">",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        await writeFile(one.path, `---\nname: a\n---\n${pieces.join("")}`);
        const { context } = await loadSkill(one, "user-invoked");
        expect(context.match(/<[\s/]*skill-context/gi)).toEqual(["<skill-context", "</skill-context"]);
        expect(context.endsWith("\n</skill-context>")).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it("the context of a skill is not read through a link that replaced it", async () => {
    await using stage = await skillStage({ "given/a/SKILL.md": skill("a"), "secret/SKILL.md": "SECRET" });
    const { skills } = await stage.find({ skillDirectories: [stage.at("given")] });
    await rm(stage.at("given/a"), { recursive: true });
    await symlink(stage.at("secret"), stage.at("given/a"));
    const [one] = skills;
    await expect(one && loadSkill(one, "user-invoked")).rejects.toThrow("now a link to another place");
  });

  it("the context of a skill omits workspace scripts that appeared or changed after their check", async () => {
    await using stage = await skillStage({
      "work/.github/skills/text/SKILL.md": skill("text"),
      "work/.github/skills/tool/SKILL.md": skill("tool"),
      "work/.github/skills/tool/run.sh": "true",
    });
    const { skills } = await stage.find({ check: () => "approved" });
    const load = async (name: string) =>
      loadSkill(skills.find((one) => one.name === name) ?? fail(name), "user-invoked");
    await expect(load("text")).resolves.toBeDefined();
    await expect(load("tool")).resolves.toBeDefined();
    await writeFile(stage.at("work/.github/skills/text/run.sh"), "true");
    await writeFile(stage.at("work/.github/skills/tool/run.sh"), "false");
    await expect(load("text")).rejects.toThrow("not approved");
    await expect(load("tool")).rejects.toThrow("not approved");
  });
});

describe("skills of an agent", () => {
  it("SDK-10 skills of an agent are preloaded in full, without a call of the tool", async () => {
    await using stage = await skillStage({ "given/a/SKILL.md": skill("a"), "given/b/SKILL.md": skill("b") });
    const { skills } = await stage.find({ skillDirectories: [stage.at("given")] });
    const { text, missing, invoked } = await skillContext(["b", "a"], skills);
    expect(text).toContain("# b\n\nDo it.\n");
    expect(text.indexOf("# b")).toBeLessThan(text.indexOf("# a"));
    expect(missing).toEqual([]);
    expect(invoked.map(({ name, trigger }) => [name, trigger])).toEqual([
      ["b", "context-load"],
      ["a", "context-load"],
    ]);
  });

  it("SDK-11 an agent that names no skills has none", async () => {
    await using stage = await skillStage({ "given/a/SKILL.md": skill("a") });
    const { skills } = await stage.find({ skillDirectories: [stage.at("given")] });
    expect(await skillContext([], skills)).toEqual({ text: "", missing: [], invoked: [] });
  });

  it("SDK-12 missing or disabled skills of an agent are reported, and the others load", async () => {
    await using stage = await skillStage({ "given/a/SKILL.md": skill("a"), "given/off/SKILL.md": skill("off") });
    const { skills } = await stage.find({ skillDirectories: [stage.at("given")], disabled: ["off"] });
    const { text, missing } = await skillContext(["nowhere", "off", "a"], skills);
    expect(text).toContain("# a");
    expect(missing).toEqual([
      { name: "nowhere", reason: 'There is no skill called "nowhere".' },
      { name: "off", reason: "The skill off is switched off." },
    ]);
  });
});

describe("allowed tools", () => {
  const base = { name: "s", path: "/s/SKILL.md" } as const;
  const known = (rule: string) => (/^(shell|read|write|url|view)\b/.test(rule) ? undefined : "nothing is called that");

  it("a used skill's allowed tools become permission rules, and unknown ones are reported", () => {
    const allowedTools = ["Bash(git log:*)", "Read", "Grep", "WebFetch(domain:example.com)", "view", "Nonsense", "*"];
    const { rules, notices } = allowedToolRules({ ...base, scope: "user", allowedTools }, known);
    expect(rules).toEqual(["shell(git log:*)", "read", "url(example.com)", "view"]);
    expect(notices.map(({ message }) => message)).toEqual([
      'The skill s allows "Nonsense", which is not used: nothing is called that',
      'The skill s allows "*", which is not used: it would allow everything',
    ]);
  });

  it("a workspace skill's allowed tools do not become permission rules", () => {
    expect(allowedToolRules({ ...base, scope: "workspace", allowedTools: ["Bash"] }, known).rules).toEqual([]);
  });

  it("a used skill's allowed tools are passed to listeners as they are written", async () => {
    const text = skill("a", "x", "allowed-tools:\n  - Bash(git status)\n  - Read\n");
    await using stage = await skillStage({ "given/a/SKILL.md": text });
    const { skillInvoked } = await call(await toolOf(stage), { skill: "a" }, contextFor("/"));
    expect(skillInvoked?.allowedTools).toEqual(["Bash(git status)", "Read"]);
  });
});

function fail(name: string): never {
  throw new Error(`no skill ${name}`);
}

describe("the text after a skill's name", () => {
  const filled = async (text: string, request: string) => {
    await using stage = await skillStage({ "given/fix/SKILL.md": `${skill("fix", "Fixes")}${text}\n` });
    const { skills } = await stage.find({ skillDirectories: [stage.at("given")] });
    const [found] = skills.filter(({ name }) => name === "fix");
    if (!found) throw new Error("the skill is missing");
    const { invoked, takesRequest } = await loadSkill(found, "user-invoked", request);
    return { text: invoked.content.trim().split("\n").at(-1), takesRequest };
  };

  it.each([
    ["Fix $1 on $2.", "bug main", "Fix bug on main.", true],
    ["Fix $1 ($ARGUMENTS).", "bug main", "Fix bug (bug main).", true],
    ["Fix $1 on $2.", "bug", "Fix bug on .", true],
    ["Fix $1.", "bug in main", "Fix bug.", false],
    ["It costs $5, not $1.50.", "bug", "It costs $5, not $1.50.", false],
    ["Write \\$1 for $1.", "bug", "Write $1 for bug.", true],
    ["Run ls | awk '{print $1}'.", "bug", "Run ls | awk '{print $1}'.", false],
    ["Run awk '{print $1}' $ARGUMENTS", "a b", "Run awk '{print $1}' a b", true],
  ])("the text after a skill's name is inserted into %j", async (text, request, expected, takesRequest) => {
    expect(await filled(text, request)).toEqual({ text: expected, takesRequest });
  });
});
