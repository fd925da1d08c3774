import { describe, expect, it } from "vitest";
import { fails, says } from "../../src/testing/index.ts";
import { withEditor } from "./stage.ts";

const failure = (asked: Promise<unknown>) =>
  asked.then(
    () => undefined,
    ({ code, message }: { code: number; message: string }) => ({ code, message }),
  );

describe("signing in from an editor", () => {
  it("offers the key of a provider as the one way, and accepts it where a provider answers", async () => {
    await withEditor({ models: ["faux-model"] }, async (editor) => {
      expect(editor.hello.authMethods).toMatchObject([{ id: "provider-key" }]);
      expect(await editor.request("authenticate", { methodId: "provider-key" })).toEqual({});
      expect(await failure(editor.request("authenticate", { methodId: "magic" }))).toMatchObject({ code: -32602 });
    });
  });

  it("says that a key is missing where only the understudy answers", async () => {
    await withEditor({ environment: { TROUPE_BASE_URL: "", TROUPE_MODEL: "" } }, async (editor) => {
      expect(await failure(editor.request("authenticate", { methodId: "provider-key" }))).toMatchObject({
        code: -32000,
        message: expect.stringContaining("ANTHROPIC_API_KEY"),
      });
    });
  });

  it("fails a prompt with the code for a missing key when the provider refuses the key, and the next one works", async () => {
    await withEditor({ steps: [fails(401), says("Hello.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await failure(editor.prompt(sessionId, "Hello"))).toMatchObject({ code: -32000 });
      expect(await editor.prompt(sessionId, "Hello")).toEqual({ stopReason: "end_turn" });
    });
  });

  it("fails with other codes for everything else", async () => {
    await withEditor({ steps: [fails(400)] }, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await failure(editor.prompt(sessionId, "Hello"))).toMatchObject({ code: -32603 });
      expect(await failure(editor.prompt("nobody", "Hello"))).toEqual({
        code: -32002,
        message: "There is no session nobody.",
      });
      const load = editor.request("session/load", { sessionId: "nobody", cwd: editor.cwd, mcpServers: [] });
      expect(await failure(load)).toMatchObject({ message: expect.not.stringContaining("Request session.") });
    });
  });
});
