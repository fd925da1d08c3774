import { approveAll, type CopilotSession, type SessionEvent } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

/** Three ways in which a program runs a command that gives the agent work. */
const surfaces: readonly [string, (session: CopilotSession, name: string, input: string) => Promise<unknown>][] = [
  ["session.send", (session, name, input) => session.send({ prompt: `/${name} ${input}`.trim() })],
  [
    "session.commands.invoke and session.send",
    async (session, name, input) => {
      const result = await session.rpc.commands.invoke({ name, input });
      if (result.kind !== "agent-prompt") throw new Error(`/${name} gave no prompt`);
      return session.send({ prompt: `${result.prompt}\n\nA note of the program.` });
    },
  ],
  [
    "session.commands.enqueue",
    (session, name, input) => session.rpc.commands.enqueue({ command: `/${name} ${input}` }),
  ],
];

async function answered(session: CopilotSession, run: () => Promise<unknown>): Promise<readonly SessionEvent[]> {
  const idle = new Promise((resolve) => session.on("session.idle", resolve));
  await run();
  await idle;
  return session.getEvents();
}

const toolsShown = (): string[] =>
  stage.model.requests
    .flatMap(({ request }) => request ?? [])
    .at(-1)
    ?.tools.map(({ name }) => name)
    .toSorted() ?? [];

const sourcesOf = (events: readonly SessionEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === "user.message" ? [event.data.source] : []));

describe.each(surfaces)("a command over %s", (_, run) => {
  it("ORC-66 ORC-68 /research limits its leader and asks twice for more before it may stop", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    stage.play(
      calls(["task", { description: "x", prompt: "look", agent_type: "explore", name: "x" }]),
      ...[says("Enough."), says("Enough."), says("Enough.")],
    );
    const events = await answered(session, () => run(session, "research", "leases"));
    expect(toolsShown()).toEqual(["create", "task", "view"]);
    expect(sourcesOf(events).filter((source) => source === "gate-research")).toHaveLength(2);
    const ends = events.flatMap((event) =>
      event.type === "tool.execution_complete" ? [event.data.error?.message] : [],
    );
    expect(ends).toEqual([expect.stringContaining('"explore" was not started')]);
  });

  it("ORC-64 /fleet reminds the agent of the remaining todos", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    const sql = (query: string) => calls(["sql", { description: "todos", query }]);
    stage.play(
      sql("INSERT INTO todos (id, title) VALUES ('a', 'A')"),
      says("Done."),
      sql("UPDATE todos SET status = 'blocked' WHERE id = 'a'"),
      says("Blocked."),
    );
    const events = await answered(session, () => run(session, "fleet", "Build it"));
    expect(sourcesOf(events)).toContain("gate-fleet");
  });

  it("ORC-61 /review asks for the agent code-review", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    stage.play(says("Nothing to review."));
    await answered(session, () => run(session, "review", "the last commit"));
    const { messages = [] } = stage.model.requests.flatMap(({ request }) => request ?? []).at(-1) ?? {};
    expect(messages.at(-1)?.content).toMatch(/code-review[\s\S]*the last commit/);
  });
});

describe("a message that begins with a slash", () => {
  it("a message with a slash is answered by the command itself where no model is needed", async () => {
    const session = await stage.client.createSession({});
    stage.play();
    const events = await answered(session, () => session.send({ prompt: "/usage" }));
    expect(events.filter(({ type }) => type === "user.message")).toEqual([]);
    expect(events.flatMap((event) => (event.type === "session.info" ? [event.data.infoType] : []))).toContain(
      "command",
    );
  });

  it("a message with a slash runs no command that changes the session", async () => {
    const session = await stage.client.createSession({});
    await expect(session.send({ prompt: "/autopilot on" })).rejects.toThrow(/\/autopilot changes the session/);
    await expect(session.send({ prompt: "/undo" })).rejects.toThrow(/session\.commands\.invoke/);
    expect(await session.rpc.mode.get()).toBe("interactive");
  });

  it("a message with a slash is a prompt when no command has this name", async () => {
    const session = await stage.client.createSession({});
    stage.play(says("I see."));
    const events = await answered(session, () => session.send({ prompt: "/nonsense is what?" }));
    expect(events.flatMap((event) => (event.type === "user.message" ? [event.data.content] : []))).toEqual([
      "/nonsense is what?",
    ]);
  });
});
