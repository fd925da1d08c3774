import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { withEditor } from "./stage.ts";

const forms = { elicitation: { form: {} } };
const question = { question: "Which colour?", choices: ["Red", "Blue"] };

const lastRequest = (editor: { model: { requests: readonly { body: unknown }[] } }): string =>
  JSON.stringify(editor.model.requests.at(-1)?.body);

describe("questions to the user of an editor", () => {
  it("ask_user opens a form in an editor that has forms, and returns the choice", async () => {
    const steps = [calls(["ask_user", question]), says("Red it is.")];
    await withEditor({ steps, capabilities: forms }, async (editor) => {
      const { sessionId } = await editor.open();
      editor.fillIn = () => ({ action: "accept", content: { choice: "Red" } });
      await editor.prompt(sessionId, "Paint it.");
      const [started] = editor.updates("tool_call");
      const sent = editor.wire.filter(({ method }) => method === "elicitation/create").map(({ params }) => params);
      expect(sent).toMatchObject([
        {
          mode: "form",
          sessionId,
          toolCallId: started?.toolCallId,
          message: "Which colour?",
          requestedSchema: { properties: { choice: { enum: ["Red", "Blue"] }, answer: { type: "string" } } },
        },
      ]);
      expect(lastRequest(editor)).toContain("User selected: Red");
    });
  });

  it("ask_user returns the user's own words from a form, and none when the user declines", async () => {
    const steps = [
      calls(["ask_user", { question: "Why?" }]),
      calls(["ask_user", { question: "Really?" }]),
      says("Ok."),
    ];
    await withEditor({ steps, capabilities: forms }, async (editor) => {
      const { sessionId } = await editor.open();
      editor.fillIn = ({ message }) =>
        message === "Why?" ? { action: "accept", content: { answer: "Because." } } : { action: "decline" };
      await editor.prompt(sessionId, "Ask me.");
      expect(lastRequest(editor)).toContain("User responded: Because.");
      expect(lastRequest(editor)).toContain("No user can answer now.");
    });
  });

  it("ask_user offers the choices as options where the editor has no forms", async () => {
    const steps = [calls(["ask_user", question]), calls(["ask_user", question]), says("Ok.")];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      const chosen = ["choice-1", "none"];
      editor.choose = () => chosen.shift();
      await editor.prompt(sessionId, "Paint it.");
      expect(editor.asked[0]?.options.map(({ name }) => name)).toEqual(["Red", "Blue", "None of these"]);
      expect(editor.asked[0]?.toolCall.title).toBe("Which colour?");
      expect(lastRequest(editor)).toContain("User selected: Blue");
      expect(lastRequest(editor)).toContain("User responded: None of these");
    });
  });

  it("ask_user reports at once that the user cannot answer in words if the editor has no forms", async () => {
    const steps = [calls(["ask_user", { question: "Why?" }]), says("Then not.")];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Ask me.");
      expect(editor.asked).toEqual([]);
      expect(lastRequest(editor)).toContain("No user can answer now.");
    });
  });

  it("an editor is asked to approve the plan, and the chosen action leaves plan mode", async () => {
    const propose = calls(["exit_plan_mode", { summary: "Write b.txt.", actions: ["interactive", "exit_only"] }]);
    const steps = [propose, propose, says("Started.")];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.request("session/set_mode", { sessionId, modeId: "plan" });
      const chosen = ["keep_planning", "interactive"];
      editor.choose = () => chosen.shift();
      await editor.prompt(sessionId, "Plan it.");
      expect(editor.asked.map(({ toolCall, options }) => [toolCall.kind, options.map(({ kind }) => kind)])).toEqual([
        ["switch_mode", ["allow_once", "allow_once", "reject_once"]],
        ["switch_mode", ["allow_once", "allow_once", "reject_once"]],
      ]);
      expect(editor.asked[0]?.toolCall.toolCallId).toBe(editor.updates("tool_call")[0]?.toolCallId);
      expect(JSON.stringify(editor.asked[0]?.toolCall.content)).toContain("Write b.txt.");
      expect(lastRequest(editor)).toContain("The plan was not approved");
      expect(lastRequest(editor)).toContain("Plan approved!");
      expect(editor.updates("current_mode_update").at(-1)?.currentModeId).toBe("interactive");
    });
  });

  it("a question in an editor is closed when the user cancels the prompt", async () => {
    const steps = [calls(["ask_user", question]), says("Ok.")];
    await withEditor({ steps, capabilities: forms }, async (editor) => {
      const { sessionId } = await editor.open();
      editor.fillIn = () => new Promise(() => undefined);
      const answered = editor.prompt(sessionId, "Paint it.");
      await expect.poll(() => editor.forms.length).toBe(1);
      await editor.notify("session/cancel", { sessionId });
      expect(await answered).toEqual({ stopReason: "cancelled" });
      const asked = editor.wire.find(({ method }) => method === "elicitation/create");
      expect(editor.wire.find(({ method }) => method === "$/cancel_request")?.params).toEqual({ requestId: asked?.id });
    });
  });

  it("a form that a program requests is passed to the editor, and so is the answer", async () => {
    const requestedSchema = { type: "object", properties: { port: { type: "integer", title: "Port" } } };
    await withEditor({ capabilities: forms }, async (editor) => {
      const { sessionId } = await editor.open();
      const ask = () =>
        editor.client.request("session.ui.elicitation", { sessionId, message: "Which port?", requestedSchema });
      editor.fillIn = () => ({ action: "accept", content: { port: 8080 } });
      expect(await ask()).toEqual({ action: "accept", content: { port: 8080 } });
      expect(editor.forms).toMatchObject([{ mode: "form", sessionId, message: "Which port?", requestedSchema }]);
      editor.fillIn = () => ({ action: "decline" });
      expect(await ask()).toEqual({ action: "decline" });
    });
  });
});
