import { describe, expect, it } from "vitest";
import { calls, otherwise, says, stalls } from "../../src/testing/index.ts";
import { type Opened, withEditor } from "./stage.ts";

const optionOf = (options: Opened["configOptions"], id: string) => options.find((option) => option.id === id);

describe("slash commands in an editor", () => {
  it("an editor gets the commands with their hints once the session is open", async () => {
    await withEditor({}, async (editor) => {
      const { sessionId } = await editor.open();
      const listed = () => editor.updates("available_commands_update", sessionId).at(-1)?.availableCommands ?? [];
      await expect.poll(() => listed().map(({ name }) => name)).toContain("compact");
      expect(listed().find(({ name }) => name === "rename")?.input?.hint).toEqual(expect.any(String));
      expect(listed().map(({ name }) => name)).not.toContain("/compact");
    });
  });

  it("an editor's slash command answers with its text, without a model call", async () => {
    await withEditor({}, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await editor.prompt(sessionId, "/usage")).toEqual({ stopReason: "end_turn" });
      expect(editor.said()).not.toBe("");
      expect(editor.model.requests.filter(({ wire }) => wire !== undefined)).toEqual([]);
    });
  });

  it("/compact in an editor compacts the conversation instead of sending a prompt", async () => {
    const summary = "<overview>They greeted.</overview>";
    const steps = [says("Hello."), says("Well."), says(summary), says("Yes.")];
    await withEditor({ steps, capabilities: { session: { compaction: {} } } }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Hello");
      await editor.prompt(sessionId, "How are you?");
      await editor.prompt(sessionId, "/compact keep the greeting");
      expect(editor.updates("compaction_update").map(({ status }) => status)).toEqual(["in_progress", "completed"]);
      expect(editor.said()).toMatch(/became a summary/);
      expect(JSON.stringify(editor.model.requests.at(-1)?.body)).not.toContain("/compact");
    });
  });

  it("an editor's unknown command is reported, and a path is sent as a prompt", async () => {
    await withEditor({ steps: [says("A folder.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await editor.prompt(sessionId, "/compct")).toEqual({ stopReason: "end_turn" });
      expect(editor.said()).toBe(
        "There is no command /compct here. Did you mean /compact? To send it as a prompt, begin with another word.",
      );
      await editor.prompt(sessionId, "/usr/bin is what?");
      expect(editor.said()).toMatch(/A folder\.$/);
    });
  });

  it("an editor's command prompt has the limits of the command, and quotes beside it are data", async () => {
    const steps = [calls(["bash", { command: "ls", description: "Lists" }]), otherwise(says("Enough."))];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      const resource = { uri: "file:///notes.md", text: "/compact is only a quote" };
      await editor.prompt(sessionId, "/research leases", { type: "resource", resource });
      // The gate of the command has asked twice for the report.
      expect(editor.said()).toBe("Enough.Enough.Enough.");
      expect(JSON.stringify(editor.model.requests.at(-1)?.body)).toContain("/compact is only a quote");
      expect(editor.updates("tool_call_update").map(({ status }) => status)).toEqual(["failed"]);
      expect(editor.asked).toEqual([]);
    });
  });

  it("an editor's quote that begins with a slash is data, never a command", async () => {
    await withEditor({ steps: [says("Noted.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      const resource = { uri: "file:///notes.md", text: "/autopilot" };
      await editor.prompt(sessionId, { type: "resource", resource }, "What is this?");
      expect(editor.said()).toBe("Noted.");
      expect(editor.updates("current_mode_update")).toEqual([]);
    });
  });

  it("an editor's cancel stops a compaction", async () => {
    const steps = [says("Hello."), says("Well."), stalls()];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Hello");
      await editor.prompt(sessionId, "How are you?");
      const compacting = editor.prompt(sessionId, "/compact");
      await expect.poll(() => editor.model.requests.filter(({ wire }) => wire !== undefined).length).toBe(3);
      await editor.notify("session/cancel", { sessionId });
      expect(await compacting).toEqual({ stopReason: "cancelled" });
    });
  });
});

describe("settings of a session in an editor", () => {
  it("an editor can set mode, model and effort, and a change is answered with all of them", async () => {
    const steps = [says("With the other model.")];
    await withEditor({ steps, models: ["faux-model", "other-model"] }, async (editor) => {
      const { sessionId, configOptions } = await editor.open();
      expect(configOptions.map(({ id, category }) => [id, category])).toEqual([
        ["mode", "mode"],
        ["model", "model"],
        ["effort", "thought_level"],
      ]);
      expect(optionOf(configOptions, "model")).toMatchObject({ currentValue: "custom/faux-model" });
      expect(optionOf(configOptions, "effort")).toMatchObject({ currentValue: "default" });
      const set = async (configId: string, value: unknown) =>
        (await editor.request<Opened>("session/set_config_option", { sessionId, configId, value })).configOptions;
      expect(optionOf(await set("model", "custom/other-model"), "model")?.currentValue).toBe("custom/other-model");
      const after = optionOf(await set("effort", "high"), "effort");
      expect([after?.currentValue, after?.options.map(({ value }) => value)]).toEqual([
        "high",
        ["low", "medium", "high", "xhigh", "max"],
      ]);
      await editor.prompt(sessionId, "Hello");
      const body = editor.model.requests.at(-1)?.body as { model?: string; reasoning_effort?: string };
      expect([body.model, body.reasoning_effort]).toEqual(["other-model", "high"]);
      await expect(set("effort", "enormous")).rejects.toThrow(
        /"enormous" is not a valid value of the setting "effort"/,
      );
      await expect(set("colour", "red")).rejects.toThrow(/no setting "colour"/);
      await expect(set("model", "missing/none")).rejects.toThrow();
    });
  });

  it("an editor is notified of a mode that was changed elsewhere, in both forms of the protocol", async () => {
    await withEditor({}, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "/plan");
      expect(editor.updates("current_mode_update").at(-1)?.currentModeId).toBe("plan");
      const options = editor.updates("config_option_update").at(-1)?.configOptions ?? [];
      expect(options.find(({ id }) => id === "mode")).toMatchObject({ currentValue: "plan" });
      await editor.request("session/set_mode", { sessionId, modeId: "interactive" });
      await expect.poll(() => editor.updates("current_mode_update").at(-1)?.currentModeId).toBe("interactive");
      await expect(editor.request("session/set_mode", { sessionId, modeId: "wild" })).rejects.toThrow(/"wild"/);
    });
  });
});
