import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { withEditor } from "./stage.ts";

/** A red pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

describe("calls of tools in an editor", () => {
  it("an edit is shown in an editor as a diff with its location, in the request and in the result", async () => {
    const steps = [calls(["edit", { path: "a.txt", old_str: "two", new_str: "2" }]), says("Changed.")];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await editor.prompt(sessionId, "Change it.")).toEqual({ stopReason: "end_turn" });
      const path = join(editor.cwd, "a.txt");
      const diff = { type: "diff", path, oldText: "one\ntwo\n", newText: "one\n2\n" };
      expect(editor.asked[0]?.toolCall.content?.at(-1)).toEqual(diff);
      expect(editor.updates("tool_call")).toMatchObject([{ kind: "edit", name: "edit", locations: [{ path }] }]);
      expect(editor.updates("tool_call_update")).toMatchObject([
        { status: "completed", content: [diff], locations: [{ path, line: 1 }] },
      ]);
    });
  });

  it("a new file is shown in an editor as a diff without an old text, and a read with its first line", async () => {
    const steps = [
      calls(["create", { path: "b.txt", file_text: "new\n" }]),
      calls(["view", { path: "a.txt", view_range: [2, 2] }]),
      says("Done."),
    ];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Go.");
      const [created, viewed] = editor.updates("tool_call_update");
      expect(created?.content).toEqual([{ type: "diff", path: join(editor.cwd, "b.txt"), newText: "new\n" }]);
      expect(editor.updates("tool_call")[1]?.locations).toEqual([{ path: join(editor.cwd, "a.txt"), line: 2 }]);
      expect(viewed?.content).toMatchObject([{ content: { type: "text", text: expect.stringMatching(/^```\n/) } }]);
    });
  });

  it("an editor shows the output of a command while it runs", async () => {
    const command = "echo first; until [ -e go ]; do sleep 0.05; done; echo last";
    const steps = [calls(["bash", { command, description: "Waits" }]), says("Done.")];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      const answered = editor.prompt(sessionId, "Run it.");
      const shown = () => JSON.stringify(editor.updates("tool_call_update"));
      await expect.poll(shown).toContain("first");
      expect(editor.updates("tool_call_update").some(({ status }) => status === "completed")).toBe(false);
      await import("node:fs/promises").then(({ writeFile }) => writeFile(join(editor.cwd, "go"), ""));
      await answered;
      const last = editor.updates("tool_call_update").at(-1);
      expect(last?.status).toBe("completed");
      expect(JSON.stringify(last?.content)).toContain("last");
    });
  });

  it("an editor that draws a terminal gets the output, and how the command ended", async () => {
    const steps = [calls(["bash", { command: "echo hello; exit 3", description: "Fails" }]), says("Done.")];
    await withEditor({ steps, capabilities: { _meta: { terminal_output: true } } }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Run it.");
      const [started] = editor.updates("tool_call");
      const terminal_id = started?.toolCallId;
      expect(started?.content).toEqual([{ type: "terminal", terminalId: terminal_id }]);
      expect(started?._meta).toEqual({ terminal_info: { terminal_id, cwd: editor.cwd } });
      const metas = editor.updates("tool_call_update").map(({ _meta }) => _meta);
      const printed = metas
        .map((meta) => (meta?.terminal_output as { data?: string } | undefined)?.data ?? "")
        .join("");
      expect(printed).toContain("hello");
      expect(metas.at(-1)).toMatchObject({ terminal_exit: { terminal_id, exit_code: 3, signal: null } });
    });
  });

  it("an editor shows an image that a tool returned", async () => {
    const steps = [calls(["view", { path: "red.png" }]), says("It is red.")];
    const files = { "work/red.png": Buffer.from(PIXEL, "base64") };
    await withEditor({ steps, files }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Look at it.");
      const content = editor.updates("tool_call_update").at(-1)?.content;
      expect(content?.at(-1)).toMatchObject({ type: "content", content: { type: "image", mimeType: "image/png" } });
    });
  });

  it("an editor shows the todo list as a plan, from update_todo and from the table of todos", async () => {
    const todos = "- [x] Look\n- [-] Change\n- [ ] Test";
    const steps = [
      calls(["update_todo", { todos }]),
      says("Planned."),
      calls(["sql", { query: "INSERT INTO todos (id, title, status) VALUES ('a', 'Build', 'in_progress')" }]),
      says("Planned again."),
    ];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Plan.");
      expect(editor.updates("plan")).toMatchObject([
        {
          entries: [
            { content: "Look", status: "completed", priority: "medium" },
            { content: "Change", status: "in_progress" },
            { content: "Test", status: "pending" },
          ],
        },
      ]);
      await editor.prompt(sessionId, "Plan again.");
      expect(editor.updates("plan").at(-1)?.entries).toMatchObject([{ content: "Build", status: "in_progress" }]);
    });
  });
});
