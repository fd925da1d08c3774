import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, forAgent, says, stalls } from "../../src/testing/index.ts";
import { withEditor } from "./stage.ts";

const task = calls([
  "task",
  { agent_type: "general-purpose", name: "helper", description: "Write a file", prompt: "Write b.txt." },
]);
/** Over HTTP an agent is known by its first message. */
const helper = ({ messages }: { readonly messages: readonly { readonly role: string }[] }): boolean =>
  JSON.stringify(messages.find(({ role }) => role === "user")).includes("Write b.txt.");
const steps = [
  task,
  forAgent(helper, calls(["create", { path: "b.txt", file_text: "x\n" }]), says("It is written.")),
  says("All done."),
];

describe("agents that work for the main one, in an editor", () => {
  it("an editor without the draft of subagents sees an agent's calls with the agent's name", async () => {
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Have b.txt written.");
      const [main, child] = editor.updates("tool_call");
      expect(main).toMatchObject({ name: "task", kind: "think" });
      expect(child).toMatchObject({
        name: "create",
        title: expect.stringMatching(/^.+: create b\.txt$/),
        _meta: { "troupe/agent": { agentId: "helper", parentToolCallId: main?.toolCallId } },
      });
      expect(editor.asked[0]?.toolCall.toolCallId).toBe(child?.toolCallId);
      expect(child?.toolCallId).toMatch(/^helper:/);
      expect(editor.said()).toBe("All done.");
      expect(new Set(editor.notifications.map((one) => one.sessionId))).toEqual(new Set([sessionId]));
    });
  });

  it("an editor with the draft of subagents gets a session for each agent", async () => {
    await withEditor({ steps, capabilities: { subagents: {} } }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Have b.txt written.");
      const updates = editor.updates("subagent_update", sessionId);
      const child = updates[0]?.sessionId ?? "";
      expect(updates[0]).toMatchObject({ description: "Write a file", capabilities: { cancel: {} } });
      expect(updates.flatMap(({ state }) => (state ? [state.state] : []))).toEqual([
        "running",
        "requires_action",
        "running",
        "idle",
      ]);
      expect(editor.updates("session_message", child)).toMatchObject([
        { senderSessionId: sessionId, content: [{ text: "Write b.txt." }] },
      ]);
      expect(editor.updates("tool_call", child)).toMatchObject([{ name: "create" }]);
      expect(editor.asked[0]?.sessionId).toBe(child);
      expect([editor.said(child), editor.said(sessionId)]).toEqual(["It is written.", "All done."]);
      const first = editor.notifications.findIndex((one) => one.sessionId === child);
      const announced = editor.notifications.findIndex(({ update }) => update.sessionUpdate === "subagent_update");
      expect(announced).toBeLessThan(first);
      await editor.request("session/close", { sessionId });
      editor.notifications.length = 0;
      await editor.request("session/load", { sessionId, cwd: editor.cwd, mcpServers: [] });
      expect([editor.said(child), editor.said(sessionId)]).toEqual(["It is written.", "All done."]);
      expect(editor.updates("subagent_update").at(-1)?.state).toMatchObject({ state: "idle", stopReason: "end_turn" });
    });
  });

  it("an editor cancels one agent by its session, while the main agent continues", async () => {
    const waiting = [task, forAgent(helper, stalls()), says("It was stopped.")];
    await withEditor({ steps: waiting, capabilities: { subagents: {} } }, async (editor) => {
      const { sessionId } = await editor.open();
      const answered = editor.prompt(sessionId, "Have b.txt written.");
      const child = () => editor.updates("subagent_update").find(({ state }) => state?.state === "running")?.sessionId;
      await expect.poll(child).toBeDefined();
      await editor.notify("session/cancel", { sessionId: child() });
      expect(await answered).toEqual({ stopReason: "end_turn" });
      expect(editor.said(sessionId)).toBe("It was stopped.");
      expect(editor.updates("subagent_update").at(-1)?.state).toMatchObject({ state: "idle", stopReason: "cancelled" });
    });
  });

  it("an editor sees the files of an agent in the agent's own work tree", async () => {
    const isolated = calls([
      "task",
      {
        ...{ agent_type: "general-purpose", name: "helper", description: "Write a file", isolation: "worktree" },
        prompt: "Write b.txt.",
      },
    ]);
    const [, ...rest] = steps;
    await withEditor({ steps: [isolated, ...rest], capabilities: { subagents: {} } }, async (editor) => {
      const git = (...args: string[]) => execFileSync("git", args, { cwd: editor.cwd, stdio: "ignore" });
      git("init", "-q");
      git("add", ".");
      git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Have b.txt written.");
      const [{ sessionId: child, cwd = "" } = { sessionId: "" }] = editor.updates("subagent_update");
      expect(cwd).toMatch(/worktrees.helper$/);
      expect(editor.asked[0]?.toolCall.content?.at(-1)).toMatchObject({ type: "diff", path: join(cwd ?? "", "b.txt") });
      expect(editor.updates("tool_call_update", child).at(-1)?.locations).toEqual([
        { path: join(cwd ?? "", "b.txt"), line: 1 },
      ]);
    });
  });
});
