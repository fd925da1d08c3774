import { describe, expect, it } from "vitest";
import { calls, type Moves, says, stalls, thinks, withUsage } from "../../src/testing/index.ts";
import { type Editor, type Opened, withEditor } from "./stage.ts";

interface Listed {
  readonly sessions: { readonly sessionId: string; readonly cwd: string; readonly title?: string }[];
}

const text = ({ content }: { content: { type: string; text?: string } }): string => content.text ?? "";
const reopen = (editor: Editor, method: string, sessionId: string) =>
  editor.request<Opened>(method, { sessionId, cwd: editor.cwd, mcpServers: [] });

describe("sessions of an editor", () => {
  it("an editor lists, closes, resumes and deletes a session", async () => {
    await withEditor({ steps: [says("One."), says("Two.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Say one");
      const list = async (cwd: string) => (await editor.request<Listed>("session/list", { cwd })).sessions;
      expect(await list(editor.cwd)).toMatchObject([{ sessionId, cwd: editor.cwd, title: "Say one" }]);
      expect(await list("/elsewhere")).toEqual([]);
      await editor.request("session/close", { sessionId });
      await expect(editor.prompt(sessionId, "Say two")).rejects.toThrow(/no session/);
      editor.notifications.length = 0;
      expect((await reopen(editor, "session/resume", sessionId)).modes.currentModeId).toBe("interactive");
      expect(editor.updates("user_message_chunk")).toEqual([]);
      await editor.prompt(sessionId, "Say two");
      expect(editor.said()).toBe("Two.");
      await editor.request("session/delete", { sessionId });
      expect(await list(editor.cwd)).toEqual([]);
    });
  });

  it("an editor forks a session: the copy has the history, and the original continues without it", async () => {
    await withEditor({ steps: [says("Noted."), says("42."), says("Yes.")], draft: true }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Remember 42");
      const fork = await reopen(editor, "session/fork", sessionId);
      expect(fork.sessionId).not.toBe(sessionId);
      await editor.prompt(fork.sessionId, "Which number?");
      expect(JSON.stringify(editor.model.requests.at(-1)?.body)).toContain("Remember 42");
      expect(editor.said(fork.sessionId)).toBe("42.");
      await editor.prompt(sessionId, "Still there?");
      expect(JSON.stringify(editor.model.requests.at(-1)?.body)).not.toContain("Which number?");
    });
  });

  it("an editor gets max_tokens for a reply that was cut off, and not for the reply after it", async () => {
    const cutOff: Moves = [
      { type: "text", delta: "Once upon" },
      { type: "end", stop: "length" },
    ];
    await withEditor({ steps: [cutOff, says("The end.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await editor.prompt(sessionId, "Tell a story")).toEqual({ stopReason: "max_tokens" });
      expect(await editor.prompt(sessionId, "Go on")).toEqual({ stopReason: "end_turn" });
    });
  });

  it("an editor that closes a session cancels its current answer", async () => {
    await withEditor({ steps: [stalls()] }, async (editor) => {
      const { sessionId } = await editor.open();
      const answered = editor.prompt(sessionId, "Wait");
      await expect.poll(() => editor.model.requests.filter(({ wire }) => wire !== undefined).length).toBe(1);
      await editor.request("session/close", { sessionId });
      expect(await answered).toEqual({ stopReason: "cancelled" });
    });
  });

  it("an editor's cancel also cancels the waiting prompts", async () => {
    await withEditor({ steps: [stalls(), says("Third.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      const calls = () => editor.model.requests.filter(({ wire }) => wire !== undefined).length;
      const first = editor.prompt(sessionId, "First");
      await expect.poll(calls).toBe(1);
      const second = editor.prompt(sessionId, "Second");
      const waiting = async () =>
        ((await editor.client.request("session.queue.pendingItems", { sessionId })) as { items: object[] }).items
          .length;
      await expect.poll(waiting).toBe(1);
      await editor.notify("session/cancel", { sessionId });
      expect([await first, await second]).toEqual([{ stopReason: "cancelled" }, { stopReason: "cancelled" }]);
      expect(await editor.prompt(sessionId, "Third")).toEqual({ stopReason: "end_turn" });
      expect([calls(), editor.said()]).toEqual([2, "Third."]);
    });
  });

  it("an editor that aborts its request cancels the answer", async () => {
    await withEditor({ steps: [stalls(), says("Still here.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      const giveUp = new AbortController();
      const prompt = [{ type: "text", text: "Wait" }];
      const answered = editor.request("session/prompt", { sessionId, prompt }, giveUp.signal);
      await expect.poll(() => editor.model.requests.filter(({ wire }) => wire !== undefined).length).toBe(1);
      giveUp.abort();
      expect(await answered).toEqual({ stopReason: "cancelled" });
      expect(await editor.prompt(sessionId, "And now?")).toEqual({ stopReason: "end_turn" });
    });
  });

  it("an editor that opens a session again ends the prompt in progress", async () => {
    await withEditor({ steps: [stalls()] }, async (editor) => {
      const { sessionId } = await editor.open();
      const answered = editor.prompt(sessionId, "Wait").catch((error: Error) => error.message);
      await expect.poll(() => editor.model.requests.filter(({ wire }) => wire !== undefined).length).toBe(1);
      await reopen(editor, "session/resume", sessionId);
      expect(await answered).toMatch(/was opened again/);
    });
  });

  it("an editor loads a session with its thoughts, calls, plan and title", async () => {
    const steps = [
      thinks("I should look.", calls(["view", { path: "a.txt" }], ["update_todo", { todos: "- [x] Look" }])),
      says("Two lines."),
    ];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      const uri = `file://${editor.cwd}/a.txt`;
      await editor.prompt(sessionId, "Look at a.txt", { type: "resource_link", uri, name: "a.txt" });
      expect(editor.updates("agent_thought_chunk").map(text).join("")).toBe("I should look.");
      await editor.request("session/close", { sessionId });
      editor.notifications.length = 0;
      await reopen(editor, "session/load", sessionId);
      expect(editor.updates("user_message_chunk").map(({ content }) => content)).toEqual([
        { type: "text", text: "Look at a.txt" },
        { type: "resource_link", uri, name: "a.txt" },
      ]);
      expect(editor.updates("agent_thought_chunk").map(text)).toEqual(["I should look."]);
      expect(editor.updates("tool_call").map(({ name }) => name)).toEqual(["view", "update_todo"]);
      expect(editor.updates("tool_call_update").map(({ status }) => status)).toEqual(["completed", "completed"]);
      expect(editor.updates("plan").at(-1)?.entries).toMatchObject([{ content: "Look", status: "completed" }]);
      expect(editor.said()).toBe("Two lines.");
      await expect.poll(() => editor.updates("session_info_update").at(-1)?.title).toBe("Look at a.txt");
    });
  });

  it("an editor gets no half of a surrogate pair", async () => {
    await withEditor({ steps: [says("Half \ud83d of a smile.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "\ude00 is the other half");
      expect(editor.said()).not.toMatch(/[\ud800-\udfff]/);
      expect(JSON.stringify(editor.wire)).not.toMatch(/\\ud[89ab]/i);
      const title = () => editor.updates("session_info_update").at(-1)?.title;
      await expect.poll(title).toBe("\ufffd is the other half");
    });
  });

  it("an editor gets the title, and the size of the context after each model call", async () => {
    const steps = [withUsage(says("Hello."), { inputTokens: 900, outputTokens: 100 })];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Greet me");
      await expect.poll(() => editor.updates("session_info_update").at(-1)?.title).toBe("Greet me");
      expect(editor.updates("usage_update").at(-1)).toMatchObject({ used: 1000, size: expect.any(Number) });
      await editor.prompt(sessionId, "/rename Greetings");
      expect(editor.updates("session_info_update").at(-1)?.title).toBe("Greetings");
    });
  });

  it("an editor that shows notices gets warnings as notices", async () => {
    const command = "troupe-no-such-program";
    const server = { name: "lost", command, args: [], env: [] };
    await withEditor({ steps: [says("Hello.")], capabilities: { session: { notices: {} } } }, async (editor) => {
      const { sessionId } = await editor.open({ mcpServers: [server] });
      await editor.prompt(sessionId, "Hello");
      expect(editor.updates("notice").filter(({ severity }) => severity === "warning")).toMatchObject([
        { title: expect.stringContaining("lost") },
      ]);
    });
  });
});

describe("content of a prompt", () => {
  it("an editor's prompt with audio or content of an unknown type is refused with a clear error", async () => {
    await withEditor({}, async (editor) => {
      const { sessionId } = await editor.open();
      const audio = { type: "audio", data: "AAAA", mimeType: "audio/wav" };
      await expect(editor.prompt(sessionId, audio)).rejects.toThrow(
        "troupe cannot listen to audio. Send the words as text.",
      );
      const error = await editor.prompt(sessionId, { type: "smell" }).catch((reason: Error) => reason.message);
      expect(error).toMatch(/Send text, image, resource or resource_link blocks/);
      expect(error).not.toContain('"code"');
    });
  });

  it("an editor's image is shown to the model, an SVG is quoted, and an image without data is refused", async () => {
    await withEditor({ steps: [says("Red."), says("Still here.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      const image = (data: string, mimeType: string) => ({ type: "image", data, mimeType });
      const svg = Buffer.from("<svg><title>A circle</title></svg>").toString("base64");
      await editor.prompt(sessionId, "Look.", image("iVBORw0KGgo=", "image/png"), image(svg, "image/svg+xml"));
      const shown = JSON.stringify(editor.model.requests.at(-1)?.body);
      expect(shown).toContain("data:image/png;base64,iVBORw0KGgo=");
      expect(shown).not.toContain("data:image/svg");
      expect(shown).toContain("A circle");
      await expect(editor.prompt(sessionId, "Look.", image("%%%", "image/png"))).rejects.toThrow(
        "The attachment image/png is empty, or its data is not base64.",
      );
      expect(await editor.prompt(sessionId, "And now?")).toEqual({ stopReason: "end_turn" });
    });
  });

  it("an editor's resource or server with a missing field is refused with the field's name", async () => {
    await withEditor({}, async (editor) => {
      const { sessionId } = await editor.open();
      const resource = { uri: "file:///x.bin" };
      await expect(editor.prompt(sessionId, { type: "resource", resource })).rejects.toThrow(
        "A resource needs a uri, and a text or a blob.",
      );
      await expect(editor.open({ mcpServers: [{ name: "x" }] })).rejects.toThrow("An MCP server needs a name");
    });
  });

  it("an editor's embedded resource is read: text is quoted, an image is shown, the rest is named", async () => {
    await withEditor({ steps: [says("Read.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      const blob = (uri: string, mimeType: string, bytes: string) => {
        const resource = { uri, mimeType, blob: Buffer.from(bytes).toString("base64") };
        return { type: "resource", resource };
      };
      await editor.prompt(
        sessionId,
        "What are these?",
        blob("file:///x/notes.csv", "text/csv", "a,b"),
        blob("file:///x/data.bin", "application/octet-stream", "0123"),
      );
      const shown = JSON.stringify(editor.model.requests.at(-1)?.body);
      expect(shown).toContain("Attached: notes.csv (text/csv, 3 bytes)");
      expect(shown).toContain("a,b");
      expect(shown).toContain("Attached: data.bin (application/octet-stream, 4 bytes): not shown");
    });
  });

  it("an editor's linked file is attached with its lines, a folder too, and any other link is quoted data", async () => {
    await withEditor({ steps: [says("Read.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      const link = (uri: string) => ({ type: "resource_link", uri, name: "x" });
      await editor.prompt(
        sessionId,
        "What are these?",
        link(`file://${editor.cwd}/a.txt#L1:2`),
        link(`file://${editor.cwd}/`),
        link("file://another-host/share/a.txt"),
        link("https://example.com/a"),
      );
      const shown = JSON.stringify(editor.model.requests.at(-1)?.body);
      expect(shown).toContain("a.txt (lines 1-2 of 3 lines)");
      expect(shown).toContain(`${editor.cwd}/ (1 items)`);
      for (const uri of ["file://another-host/share/a.txt", "https://example.com/a"])
        expect(shown).toContain(`<linked_resource name=\\"x\\">\\n${uri}\\n</linked_resource>`);
    });
  });
});
