import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentFromObject, parseAgent } from "../../src/agents/parse-agent.ts";
import { skillFrontmatter } from "../../src/context/skills/frontmatter-fast.ts";

const place = { id: "review", source: "user", path: "review.md" } as const;
const parse = (head: string, body = "You review.\n") => parseAgent(`---\n${head}---\n${body}`, place);
const agentOf = async (head: string) => {
  const parsed = await parse(`description: d\n${head}`);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.agent;
};

describe("a file of an agent", () => {
  it("ORC-23 an agent file has every field in its definition", async () => {
    const parsed = await parse(
      [
        "name: Code Reader",
        "displayName: The Reader",
        "description: Reads code",
        "tools: [view, grep]",
        "disallowed-tools: bash",
        "mcp-servers: { docs: { command: docs-server } }",
        "model: gpt-5",
        "models: [small, large]",
        "modelPolicy: required",
        "reasoningEffort: High",
        "skills: [notes, style]",
        "github: { permissions: read }",
        "user-invocable: false",
        "disable-model-invocation: true",
        "include-custom-instructions: true",
        "sidekick: { triggers: [{ event: user.message, limit: 3 }], behavior: persistent, max-sends-per-turn: 2 }",
        "limits: { turns: 5, tokens: 1000, costUsd: 0.5, seconds: 60 }",
        "isolation: worktree",
        "placement: elsewhere",
        "outputSchema: { type: object }",
        "read-only: true",
        "",
      ].join("\n"),
    );
    expect(parsed).toEqual({
      ok: true,
      warnings: [],
      agent: {
        id: "review",
        name: "Code Reader",
        displayName: "The Reader",
        description: "Reads code",
        prompt: "You review.",
        tools: ["view", "grep"],
        disallowedTools: ["bash"],
        readOnly: true,
        mcpServers: { docs: { command: "docs-server" } },
        models: ["small", "large"],
        modelPolicy: "required",
        reasoningEffort: "high",
        skills: ["notes", "style"],
        github: { permissions: "read" },
        userInvocable: false,
        infer: false,
        includeCustomInstructions: true,
        promptParts: ["environment", "safety", "tools", "parallel"],
        sidekick: { triggers: [{ event: "user.message", limit: 3 }], behavior: "persistent", maxSendsPerTurn: 2 },
        limits: { turns: 5, tokens: 1000, costUsd: 0.5, seconds: 60 },
        isolation: "worktree",
        placement: "elsewhere",
        outputSchema: { type: "object" },
        source: "user",
        path: "review.md",
      },
    });
  });

  it("an agent file has default values for all fields that it omits", async () => {
    expect(await agentOf("")).toEqual({
      id: "review",
      name: "review",
      displayName: "review",
      description: "d",
      prompt: "You review.",
      tools: null,
      disallowedTools: [],
      readOnly: false,
      models: [],
      modelPolicy: "preferred",
      skills: [],
      userInvocable: true,
      infer: true,
      includeCustomInstructions: false,
      promptParts: ["environment", "safety", "tools", "parallel"],
      source: "user",
      path: "review.md",
    });
  });

  it("an agent file defines a sidekick by the event that starts it, and models cannot choose a sidekick", async () => {
    const usual = { behavior: "restart", maxSendsPerTurn: 1 };
    expect(await agentOf("sidekick: user.message\n")).toMatchObject({
      sidekick: { triggers: [{ event: "user.message" }], ...usual },
      userInvocable: false,
      infer: false,
    });
    const both = "sidekick: { triggers: [user.message, { event: session.context_changed, limit: 2 }] }\n";
    expect((await agentOf(both)).sidekick).toEqual({
      triggers: [{ event: "user.message" }, { event: "session.context_changed", limit: 2 }],
      ...usual,
    });
  });

  it.each([
    "turn.end",
    "{}",
    "{ triggers: [] }",
    "{ triggers: [user.message, user.message] }",
    "{ triggers: [{ event: user.message, limit: 0 }] }",
    "{ triggers: [{ event: user.message, when: now }] }",
    "{ triggers: [user.message], behavior: often }",
    "{ triggers: [user.message], maxSendsPerTurn: 11 }",
    "{ triggers: [user.message], sends: 1 }",
  ])("an agent file is rejected when sidekick is %s, and the error says what is valid", async (block) => {
    expect(await parse(`description: d\nsidekick: ${block}\n`)).toEqual({
      ok: false,
      line: 3,
      message: expect.stringMatching(/^sidekick: this must be an event \(user\.message or session\.context_changed\)/),
    });
  });

  it("ORC-23 an agent file is used despite an unknown field, and a warning names the field with its line", async () => {
    const parsed = await parse("description: d\ncolor: red\ntemperature: 0.2\n");
    expect(parsed).toMatchObject({
      ok: true,
      warnings: [{ line: 4, message: "temperature is not a field of an agent" }],
    });
  });

  it.each([
    ["tools: [view, Read, Edit]", ["view", "edit"]],
    [
      "tools: Read, Grep, Glob, Bash, Write, WebFetch, Task, TodoWrite",
      ["view", "grep", "glob", "bash", "create", "web_fetch", "task", "update_todo"],
    ],
    [
      "tools: [read, search, edit, execute, agent, web, todo]",
      [
        "view",
        "grep",
        "glob",
        "edit",
        "create",
        "apply_patch",
        "bash",
        "task",
        "web_fetch",
        "web_search",
        "update_todo",
      ],
    ],
    [
      "tools: [docs/lookup, docs/*, mcp__my.docs__find, mcp__other]",
      ["docs-lookup", "docs-*", "my_docs-find", "other-*"],
    ],
    ['tools: [view, "*"]', null],
    ['tools: "*"', null],
    ["tools: []", []],
    ["tools:", []],
  ])("an agent file can list tools as %s", async (line, tools) => {
    expect((await agentOf(`${line}\n`)).tools).toEqual(tools);
  });

  it("an agent file that asks for a part of a tool does not get the whole tool", async () => {
    const parsed = await parse("description: d\ntools: Bash(git log:*, -n), Read\n");
    expect(parsed).toMatchObject({ ok: true, agent: { tools: ["view"] }, warnings: [{ line: 3 }] });
  });

  it.each([
    ["infer: false", false],
    ["infer: true", true],
    ["disable-model-invocation: true", false],
    ['disableModelInvocation: "false"', true],
    ["infer: true\ndisable-model-invocation: true", false],
  ])("the agent file's field %s decides whether a model may choose the agent: %s", async (line, infer) => {
    expect((await agentOf(`${line}\n`)).infer).toBe(infer);
  });

  it.each([
    ["models: a, b\nmodel: c", ["a", "b"]],
    ["model: c", ["c"]],
    ["model: inherit", []],
  ])("the agent file's field %s decides that the agent runs on %j", async (line, models) => {
    expect((await agentOf(`${line}\n`)).models).toEqual(models);
  });

  it.each([
    ["a value of the wrong kind", "description: d\nuser-invocable: maybe\n", 3, /user-invocable/],
    ["tools that are not a list", "description: d\n\ntools: { a: 1 }\n", 4, /tools/],
    ["an unknown limit", "description: d\nlimits: { turn: 5 }\n", 3, /limits/],
    ["a limit below one", "description: d\nlimits: { turns: 0 }\n", 3, /limits/],
    ["an unknown placement", "description: d\nplacement: nowhere\n", 3, /placement: this must be elsewhere or here/],
    ["an unknown isolation", "description: d\nisolation: none-at-all\n", 3, /isolation/],
    ["YAML that cannot be read", "description: d\ntools: [view\n", 4, /./],
    ["no description", "name: x\n", 1, /no description/],
    ["the same field twice", "description: d\nread-only: true\nreadOnly: false\n", 4, /twice/],
    ["a name that cannot be used", "name: ../../etc\ndescription: d\n", 2, /name/],
    ["a name that looks like one of a plugin's", "name: tidy:lint\ndescription: d\n", 2, /name/],
    ["a name that is too long", `name: ${"x".repeat(65)}\ndescription: d\n`, 2, /64/],
    ["a prompt in the wrong place", "description: d\nprompt: do it\n", 3, /below/],
    ["a key that reaches prototypes", "description: d\noutputSchema: { constructor: 1 }\n", 2, /constructor/],
  ])("an agent file is refused with %s, and the line is named", async (_what, head, line, message) => {
    expect(await parse(head)).toEqual({ ok: false, line, message: expect.stringMatching(message) });
  });

  it.each([
    ["without a prompt", "---\ndescription: d\n---\n  \n"],
    ["without a head", "Just words.\n"],
    ["with an open head", "---\ndescription: d\n"],
    ["larger than 64 KiB", `---\ndescription: d\n---\n${"x".repeat(64 * 1024)}`],
    ["empty", ""],
  ])("%s is refused", async (_what, text) => {
    expect(await parseAgent(text, place)).toMatchObject({ ok: false, line: 1 });
  });

  it("an agent file has its description shortened to one line without control characters", async () => {
    const parsed = await parse(`description: "a\\u001b[31m red\\n line ${"x".repeat(2000)}"\n`);
    if (!parsed.ok) throw new Error(parsed.message);
    expect(parsed.agent.description).toHaveLength(1024);
    expect(parsed.agent.description).toMatch(/^a red line x/);
    expect(parsed.warnings).toEqual([{ line: 2, message: "description is cut at 1024 characters" }]);
  });

  it("every reader of frontmatter gives the same agent", async () => {
    const text = "---\nname: quick\ndescription: Reads quickly\ntools: view, grep\nread-only: true\n---\nGo.\n";
    expect(await parseAgent(text, { ...place, read: skillFrontmatter })).toEqual(await parseAgent(text, place));
  });

  it("the parser of agent files never throws, whatever the file contains", async () => {
    const line = fc.constantFrom(
      "---",
      "name: x",
      "description: y",
      "tools:",
      "- *",
      "  a: [",
      "limits: {turns: -1}",
      "&a *a",
      "\u0000",
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(line).map((lines) => `---\n${lines.join("\n")}\n---\nbody`),
    );
    await fc.assert(
      fc.asyncProperty(text, async (markdown) => {
        const parsed = await parseAgent(markdown, place);
        expect(parsed.ok || parsed.line >= 1).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});

describe("an agent of a program", () => {
  const from = (value: unknown) => agentFromObject(value, { source: "program" });

  it("SDK-03 SDK-04 SDK-06 SDK-09 an agent of a program has the documented defaults", () => {
    const parsed = from({ name: "reader", prompt: "Read.", displayName: "Reader", description: "reads", tools: null });
    expect(parsed).toMatchObject({
      ok: true,
      agent: { id: "reader", displayName: "Reader", description: "reads", tools: null, infer: true, source: "program" },
    });
  });

  it("SDK-05 an agent of a program has exactly the tools that it names", () => {
    expect(from({ name: "a", prompt: "p", tools: ["view", "edit"] })).toMatchObject({
      agent: { tools: ["view", "edit"] },
    });
  });

  it.each([
    ["no name", { prompt: "p" }, /name is missing/],
    ["no prompt", { name: "a" }, /a: prompt is missing/],
    ["no object", "a", /not an object/],
    ["a field of the wrong kind", { name: "a", prompt: "p", tools: 5 }, /tools/],
    [
      "a key that reaches prototypes",
      { name: "a", prompt: "p", mcpServers: JSON.parse('{"__proto__":{}}') },
      /mcpServers/,
    ],
  ])("SDK-02 an agent of a program is refused with %s", (_what, value, message) => {
    expect(from(value)).toMatchObject({ ok: false, message: expect.stringMatching(message) });
  });
});
