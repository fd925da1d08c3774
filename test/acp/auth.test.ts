import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { fails, says, withFaults } from "../../src/testing/index.ts";
import { type Editor, withEditor } from "./stage.ts";

const failure = (asked: Promise<unknown>) =>
  asked.then(
    () => undefined,
    ({ code, message }: { code: number; message: string }) => ({ code, message }),
  );

/** No provider is configured; a key of OpenAI would be tried at the scripted model. */
const keyless = { TROUPE_BASE_URL: "", TROUPE_MODEL: "", OPENAI_BASE_URL: "" };
const pages = { elicitation: { url: {} } };

/** Loads the page, fills in the form and sends it, as a browser does. */
async function enter(url: string, key: string, provider = "openai"): Promise<{ form: string; result: string }> {
  const form = await (await fetch(url)).text();
  const answer = await fetch(url, { method: "POST", body: new URLSearchParams({ provider, key }) });
  return { form, result: await answer.text() };
}

const addressIn = (request: object): string => ("url" in request ? String(request.url) : "");

const storedKeys = async (editor: Editor): Promise<unknown> =>
  JSON.parse(await readFile(join(editor.state, "providers.json"), "utf8"));

describe("signing in from an editor", () => {
  it("an editor is offered sign-in by provider key, which succeeds where a provider answers", async () => {
    await withEditor({ models: ["faux-model"] }, async (editor) => {
      expect(editor.hello.authMethods).toMatchObject([{ id: "provider-key" }]);
      expect(await editor.request("authenticate", { methodId: "provider-key" })).toEqual({});
      expect(await failure(editor.request("authenticate", { methodId: "magic" }))).toMatchObject({ code: -32602 });
    });
  });

  it("sign-in from an editor reports a missing key where only the understudy answers", async () => {
    await withEditor({ environment: keyless }, async (editor) => {
      expect(await failure(editor.request("authenticate", { methodId: "provider-key" }))).toMatchObject({
        code: -32000,
        message: expect.stringContaining("ANTHROPIC_API_KEY"),
      });
    });
  });

  it("sign-in from an editor opens a page for a key, tests the key, stores it and uses it", async () => {
    const steps = [fails(401), says("ready"), says("Hello from the provider.")];
    await withEditor(
      { environment: keyless, keyedBy: "OPENAI_BASE_URL", capabilities: pages, steps },
      async (editor) => {
        const { sessionId } = await editor.open();
        const entered: { form: string; result: string }[] = [];
        editor.fillIn = async (request) => {
          const url = addressIn(request);
          expect(await (await fetch(`${url}x`)).text()).toContain("Nothing here");
          entered.push(await enter(url, "sk-wrong"), await enter(url, "sk-right"));
          return { action: "accept" };
        };
        expect(await editor.request("authenticate", { methodId: "provider-key" })).toEqual({});
        expect(editor.forms).toMatchObject([{ mode: "url", requestId: expect.anything() }]);
        expect(entered[0]?.form).toContain('type="password"');
        expect(entered[0]?.form).toContain(`OpenAI at ${new URL(editor.model.baseUrl).host}`);
        expect(entered[0]?.result).toMatch(/The key was not stored: OpenAI did not answer with it/);
        expect(entered[1]?.result).toMatch(/Stored\. openai\/\S+ answers/);
        expect(await storedKeys(editor)).toEqual({ providers: { openai: { apiKey: "sk-right" } } });
        expect((await stat(join(editor.state, "providers.json"))).mode & 0o077).toBe(0);
        expect(JSON.stringify(editor.wire)).not.toContain("sk-right");
        expect(editor.wire.map(({ method }) => method)).toContain("elicitation/complete");
        await editor.prompt(sessionId, "Hello");
        expect(editor.said(sessionId)).toBe("Hello from the provider.");
        expect(editor.model.requests.at(-1)?.headers.authorization).toBe("Bearer sk-right");
      },
    );
  });

  it("sign-in from an editor stores nothing when the user cancels", async () => {
    await withEditor({ environment: keyless, keyedBy: "OPENAI_BASE_URL", capabilities: pages }, async (editor) => {
      editor.fillIn = () => ({ action: "decline" });
      expect(await failure(editor.request("authenticate", { methodId: "provider-key" }))).toMatchObject({
        code: -32000,
      });
      await expect(storedKeys(editor)).rejects.toThrow("ENOENT");
    });
  });

  it("sign-in from an editor stores nothing when the user cancels while the key is tested", async () => {
    const release = deferred<void>();
    const steps = [withFaults(says("ready"), { stall: "headers", stallUntil: release.promise })];
    await withEditor(
      { environment: keyless, keyedBy: "OPENAI_BASE_URL", capabilities: pages, steps, draft: true },
      async (editor) => {
        const cancel = new AbortController();
        let sent: Promise<unknown> = Promise.resolve();
        editor.fillIn = (request) => {
          sent = enter(addressIn(request), "sk-late");
          return { action: "accept" };
        };
        const signIn = failure(editor.request("authenticate", { methodId: "provider-key" }, cancel.signal));
        await expect.poll(() => editor.model.requests.length).toBe(1);
        cancel.abort();
        expect(await signIn).toBeDefined();
        release.resolve();
        await sent.catch(() => undefined); // the page may be gone before its answer arrives
        await editor.request("auth/status", {});
        await expect(storedKeys(editor)).rejects.toThrow("ENOENT");
      },
    );
  });

  it("logout from an editor removes the stored keys and nothing else", async () => {
    const files = {
      "state/providers.json": JSON.stringify({
        providers: {
          openai: { apiKey: "sk-stored", maxConcurrency: 2 },
          own: { baseUrl: "http://127.0.0.1:9/v1", apiKey: "sk-own" },
        },
      }),
    };
    await withEditor({ environment: keyless, keyedBy: "OPENAI_BASE_URL", files, draft: true }, async (editor) => {
      expect(editor.hello.agentCapabilities).toMatchObject({ auth: { logout: {} } });
      const { sessionId } = await editor.open();
      expect(await editor.request("logout", {})).toEqual({});
      expect(await storedKeys(editor)).toEqual({
        providers: {
          openai: { maxConcurrency: 2 },
          own: { baseUrl: "http://127.0.0.1:9/v1", apiKey: "sk-own" },
        },
      });
      expect(await failure(editor.prompt(sessionId, "Hello"))).toMatchObject({
        code: -32000,
        message: expect.stringContaining("openai has no key any more"),
      });
      expect(editor.model.requests.filter(({ body }) => body !== undefined)).toEqual([]);
    });
  });

  it("logout from an editor names a provider that still has a key from the environment", async () => {
    const environment = { ...keyless, OPENAI_API_KEY: "sk-env" };
    await withEditor({ environment, keyedBy: "OPENAI_BASE_URL" }, async (editor) => {
      expect(await failure(editor.request("logout", {}))).toMatchObject({
        code: -32603,
        message: expect.stringContaining("OpenAI"),
      });
    });
  });

  it("a prompt asks for another key when the provider refuses the current one, and the session continues", async () => {
    const steps = [fails(401), says("ready"), says("Hello.")];
    const environment = { ...keyless, OPENAI_API_KEY: "sk-old" };
    await withEditor({ environment, keyedBy: "OPENAI_BASE_URL", capabilities: pages, steps }, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await failure(editor.prompt(sessionId, "Hello"))).toMatchObject({ code: -32000 });
      editor.fillIn = async (request) => {
        const url = addressIn(request);
        await enter(url, "sk-new");
        return { action: "accept" };
      };
      expect(await editor.request("authenticate", { methodId: "provider-key" })).toEqual({});
      expect(await editor.prompt(sessionId, "Hello")).toEqual({ stopReason: "end_turn" });
      expect(editor.model.requests.at(-1)?.headers.authorization).toBe("Bearer sk-new");
    });
  });

  it("/login shows the address of the sign-in page to an editor that opens no pages", async () => {
    const environment = keyless;
    await withEditor({ environment, keyedBy: "OPENAI_BASE_URL", steps: [says("ready")] }, async (editor) => {
      const { sessionId } = await editor.open();
      const answered = editor.prompt(sessionId, "/login");
      await expect.poll(() => editor.said(sessionId)).toContain("http://127.0.0.1:");
      const url = /http:\S+/.exec(editor.said(sessionId))?.[0] ?? "";
      await enter(url, "sk-right");
      expect(await answered).toEqual({ stopReason: "end_turn" });
      expect(editor.said(sessionId)).toContain("The key is stored: openai/");
      const [names] = editor.updates("available_commands_update");
      expect(names?.availableCommands.map(({ name }) => name)).toContain("login");
    });
  });

  it("/login ends when the editor cancels the prompt", async () => {
    await withEditor({ environment: keyless }, async (editor) => {
      const { sessionId } = await editor.open();
      const answered = editor.prompt(sessionId, "/login");
      await expect.poll(() => editor.said(sessionId)).toContain("http://127.0.0.1:");
      await editor.notify("session/cancel", { sessionId });
      expect(await answered).toEqual({ stopReason: "cancelled" });
      const url = /http:\S+/.exec(editor.said(sessionId))?.[0] ?? "";
      await expect
        .poll(() =>
          fetch(url).then(
            () => "open",
            () => "closed",
          ),
        )
        .toBe("closed");
    });
  });

  it("sign-in in a terminal is offered to editors that can run one, in the form that they know", async () => {
    await withEditor({ capabilities: { auth: { terminal: true } } }, async ({ hello }) => {
      expect(hello.authMethods?.[1]).toMatchObject({ type: "terminal", args: ["login"] });
    });
    await withEditor({ capabilities: { _meta: { "terminal-auth": true } } }, async ({ hello }) => {
      expect(hello.authMethods?.[1]).toMatchObject({
        _meta: { "terminal-auth": { command: "node", args: ["troupe.js", "login"], label: "troupe login" } },
      });
    });
    await withEditor({}, async ({ hello }) => expect(hello.authMethods).toHaveLength(1));
  });

  it("auth/status reports whether a provider has a key", async () => {
    await withEditor({ models: ["faux-model"], draft: true }, async (editor) => {
      expect(await editor.request("auth/status", {})).toEqual({ state: "authenticated", accounts: [] });
    });
    const environment = { ...keyless, OPENAI_API_KEY: "sk-key" };
    await withEditor({ environment, keyedBy: "OPENAI_BASE_URL", draft: true }, async (editor) => {
      expect(await editor.request("auth/status", {})).toEqual({
        state: "authenticated",
        accounts: [{ label: "Key of OpenAI" }],
      });
    });
    await withEditor({ environment: keyless, draft: true }, async (editor) => {
      expect(await editor.request("auth/status", {})).toEqual({ state: "unauthenticated", accounts: [] });
    });
  });

  it("a prompt with a refused key fails with the code for a missing key, and the next one works", async () => {
    await withEditor({ steps: [fails(401), says("Hello.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      expect(await failure(editor.prompt(sessionId, "Hello"))).toMatchObject({ code: -32000 });
      expect(await editor.prompt(sessionId, "Hello")).toEqual({ stopReason: "end_turn" });
    });
  });

  it("failures other than a missing key have other error codes in an editor", async () => {
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
