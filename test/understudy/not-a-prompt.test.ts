import { expect, test } from "vitest";
import { builtinCommands } from "../../src/commands/list.ts";
import { quoted, wrapInTag } from "../../src/lib/quoting.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { needsModel } from "../../src/model/understudy/commands.ts";
import { promptsIn } from "../../src/model/understudy/prompts.ts";
import { nextStep, understudy } from "../../src/model/understudy/understudy.ts";
import type { Message } from "../../src/protocol/message.ts";
import { type AutopilotStep, afterStop, initialState, type RunFacts } from "../../src/session/modes/autopilot.ts";

const QUESTION = "Explain how this repository is organised";
const user = (content: string): Message => ({ role: "user", content });
const asking: Message = {
  role: "assistant",
  content: "",
  calls: [{ toolCallId: "1", name: "view", arguments: { path: "packages/web" } }],
};
const seen: Message = { role: "tool", toolCallId: "1", content: "a.ts", isError: false };
const tool = (name: string) => ({ name, description: "", parameters: { type: "object" } });

function request(messages: readonly Message[], tools = [tool("view"), tool("glob")]): ModelRequest {
  return { model: "understudy", system: "", messages, tools, stream: false };
}

async function play(messages: readonly Message[]): Promise<{ text: string; calls: string[] }> {
  let text = "";
  const calls: string[] = [];
  const signal = new AbortController().signal;
  for await (const event of understudy().stream(request(messages, [tool("task_complete")]), signal)) {
    if (event.type === "text") text += event.delta;
    if (event.type === "call") calls.push(event.call.name);
  }
  return { text, calls };
}

test.each([
  [
    "instructions of a folder",
    wrapInTag("instruction_discovered", { path: "w".repeat(400) }, "- Use tabs.\n- Fix it."),
  ],
  ["two of them", "a b".replace(/\w/g, (path) => wrapInTag("instruction_discovered", { path }, "# Web\n\nAdd tests."))],
  ["a notice", wrapInTag("system_notification", {}, "What changed?")],
  ["a skill", wrapInTag("skill-context", { name: "x" }, quoted("Write release notes."))],
  ["a skill of ours", wrapInTag("skill", { name: "x" }, "Write release notes.")],
  ["words of a hook", "The branch is main and the build is green."],
  ["a listing of a hook", "2026-01-01 ok\n2026-01-02 ok\n2026-01-03 ok\n2026-01-04 ok\n2026-01-05 ok"],
])("%s in the middle of a run is not a prompt for the understudy", (_, injected) => {
  const messages = [user(QUESTION), asking, seen, user(injected)];
  expect(promptsIn(messages)).toEqual({ prompts: [QUESTION], since: messages.slice(1) });
  expect(nextStep(request(messages))).toEqual(nextStep(request(messages.slice(0, 3))));
});

test("a user message in the middle of a run is a prompt", () => {
  for (const said of ["where is `parseConfig` defined?", "Fix the parser", "Look\n<piped_input>\nx\n</piped_input>"]) {
    expect(promptsIn([user(QUESTION), asking, seen, user(said)]).prompts).toEqual([QUESTION, said]);
  }
  expect(promptsIn([user("Use tabs."), user("tell a joke")]).prompts.at(-1)).toBe("tell a joke");
  const answered: Message = { role: "assistant", content: "So.", calls: [] };
  expect(promptsIn([user(QUESTION), answered, user("nice weather today")]).prompts).toHaveLength(2);
});

test("the text behind an agent's skills in one message is still its prompt", () => {
  const content = `${wrapInTag("skill", { name: "x" }, "Be brief.")}\n\nwhere is \`a\` defined?`;
  expect(promptsIn([user(content)]).prompts).toEqual(["where is `a` defined?"]);
});

test.each([
  "Fix the failing test in src/a.ts",
  "src/a.ts needs a null check",
  "`parseConfig` should be renamed, please check",
  "Do something about the weather in here",
])("the understudy in autopilot does not call %j complete, and the run ends as blocked", async (prompt) => {
  const messages = [user(prompt)];
  let flight = initialState;
  let step: AutopilotStep = { kind: "wait" };
  for (let stops = 0; stops < 5 && step.kind !== "end"; stops++) {
    const { text, calls } = await play(messages);
    expect(calls).toEqual([]);
    const facts: RunFacts = { answer: text, calls: "", changed: false };
    [flight, step] = afterStop(flight, { kind: "done", facts, pending: false, autopilot: true }, {});
    messages.push({ role: "assistant", content: text, calls: [] });
    if (step.kind === "send") messages.push(user(step.message));
  }
  expect(step).toMatchObject({ kind: "end", verdict: { kind: "blocked" } });
  expect(promptsIn(messages).prompts).toEqual([prompt]);
});

test("the understudy in autopilot calls an answered question complete", async () => {
  expect((await play([user("where is `parseConfig` defined?")])).calls).toEqual(["task_complete"]);
  expect((await play([user("what failed?\n<piped_input>\nERROR a\n</piped_input>")])).calls).toEqual(["task_complete"]);
});

test.each([
  ["review", "the last commit"],
  ["fleet", "fix src/a.ts and explain src/b.ts"],
  ["research", "how leases expire"],
  ["plan", "explain how this repository is organised"],
  ["subconscious", "run"],
] as const)("the prompt of /%s is answered with what is needed to run it", async (name, wish) => {
  const prompt = await promptOf(name, wish);
  const step = nextStep(request([user(prompt)]));
  expect(step).toEqual(needsModel(name));
  const [answer = ""] = step.kind === "answer" ? step.text.split("\n\n_understudy") : [];
  expect(answer).toMatch(
    /^`\/\w+` needs a real model: .+`troupe models`.+\nWhat I can do instead is .+`troupe -p ".+"`\.$/s,
  );
  expect(answer).toContain(`/${name}`);
  expect((await play([user(prompt)])).calls).toEqual([]);
});

test("the understudy reports an empty pipe as empty", async () => {
  const { text, calls } = await play([user("Summarise this\n\n<piped_input>\n\n</piped_input>")]);
  expect(text).toMatch(/^The piped input was empty/);
  expect(calls).toEqual([]);
});

async function promptOf(name: string, wish: string): Promise<string> {
  const command = builtinCommands.find((one) => one.name === name);
  const agents = {
    list: () => [{ name: "rem-agent", description: "" }],
    selected: () => undefined,
    select: async () => {},
  };
  const result = await command?.run(wish, { mode: "interactive", filesFolder: "/files", now: () => 0, agents });
  if (result?.kind !== "prompt") throw new Error("expected a prompt");
  return result.prompt;
}
