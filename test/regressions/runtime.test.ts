import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { createRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import { submit } from "../../src/runtime/submit.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";
import { HANG_MS } from "../support/work.ts";

describe("A session of the runtime", () => {
  it("a session reads nothing outside of its folder with all paths allowed when settings forbid that", () =>
    inPlace(async ({ root, folder, runtime, script }) => {
      const settings = { permissions: { disableBypassPermissionsMode: "disable" } };
      await root.files({ "home/settings.json": JSON.stringify(settings), "outside.txt": "OUTSIDE-CONTENT" });
      const session = await runtime.createSession({
        cwd: folder,
        permissions: { allTools: true, allUrls: true, paths: "all" },
        model: { name: await script(call("view", { path: root.at("outside.txt") }), { say: "ok" }) },
      });
      await session.sendAndWait({ prompt: "go" });
      const done = dataOf(session.events, "tool.execution_complete");
      await session.close();
      expect(done).toHaveLength(1);
      expect(JSON.stringify(done)).not.toContain("OUTSIDE-CONTENT");
    }));

  it("a session resumes with the model of its main agent, not with that of a background agent", () =>
    inPlace(
      async ({ root, folder, runtime }) => {
        const work = { baseUrl: "http://127.0.0.1:9/v1", wireApi: "completions", apiKeyVariable: "K" };
        const providers = { work: { ...work, models: { large: {}, small: {} } } };
        await root.files({ "home/providers.json": JSON.stringify({ providers }) });
        const sessionId = await writeLog(runtime, folder);
        const session = await runtime.resumeSession(sessionId, { cwd: folder });
        const { model } = session.mainAgent.model;
        await session.close();
        expect(model).toBe("large");
      },
      { K: "secret-value-1234567" },
    ));

  it("a session may exclude the skill tool that it offers", () =>
    inPlace(async ({ folder, runtime, script }) => {
      const model = await script({ say: "ok" });
      const one = await runtime.createSession({ cwd: folder, model: { name: model } });
      const offered = one.mainAgent.prompt.tools.map(({ name }) => name);
      await one.close();
      const other = await runtime.createSession({
        cwd: folder,
        model: { name: model },
        tools: { choice: { excluded: ["skill"] } },
      });
      const left = other.mainAgent.prompt.tools.map(({ name }) => name);
      await other.close();
      expect(offered).toContain("skill");
      expect(left).not.toContain("skill");
    }));

  it("a session redacts the secrets of .env that commands receive", () =>
    inPlace(async ({ root, folder, runtime, script }) => {
      const secret = "p7fWq2LmZr81xTyQ";
      await root.files({
        "home/settings.json": JSON.stringify({ sandbox: { allowEnvironmentFiles: true } }),
        "work/.env": `BILLING_SECRET=${secret}\n`,
      });
      const session = await runtime.createSession({
        cwd: folder,
        permissions: { allTools: true },
        workspace: { trustFolder: true },
        model: {
          name: await script(call("bash", { command: "echo value: $BILLING_SECRET", description: "d" }), { say: "ok" }),
        },
      });
      await session.sendAndWait({ prompt: "go" });
      const text = JSON.stringify(session.events);
      await session.close();
      expect(text).toContain("value: ");
      expect(text).not.toContain(secret);
    }));

  it("a session of the runtime resumes in plan mode if it began in plan mode and no mode is requested", () =>
    inPlace(async ({ folder, runtime, script }) => {
      const one = await runtime.createSession({
        cwd: folder,
        mode: "plan",
        model: { name: await script({ say: "ok" }) },
      });
      await one.sendAndWait({ prompt: "x" });
      await one.close();
      const two = await runtime.resumeSession(one.id, { cwd: folder, model: { name: await script({ say: "ok" }) } });
      const mode = two.mainAgent.modes.current;
      await two.close();
      expect(mode).toBe("plan");
    }));

  it("a session accepts a rule about a server that only an agent brings", () =>
    inPlace(async ({ root, folder, runtime, script }) => {
      const head = "name: dba\ndescription: d\nmcp-servers:\n  proddb:\n    command: /bin/true";
      await root.files({ "home/agents/dba.md": `---\n${head}\n---\nYou are dba.\n` });
      const session = await runtime.createSession({
        cwd: folder,
        permissions: { denyTools: ["proddb(drop)"] },
        model: { name: await script({ say: "ok" }) },
      });
      await session.close();
    }));

  it("a session that is closed stops the check of autopilot", () =>
    inPlace(async ({ folder, runtime, script }) => {
      const session = await runtime.createSession({
        cwd: folder,
        mode: "autopilot",
        permissions: { allTools: true },
        model: { name: await script(call("task_complete", { summary: "done" })) },
      });
      const check = "touch begun; sleep 60; exit 1";
      const result = submit(session, "go", { check }).catch((error: Error) => error.message);
      await expect.poll(() => existsSync(join(folder, "begun"))).toBe(true);
      const began = performance.now();
      await session.close();
      await result;
      expect(performance.now() - began).toBeLessThan(HANG_MS);
    }));
});

interface Place {
  readonly root: TempFolder;
  /** Where the agent works. */
  readonly folder: string;
  readonly runtime: Runtime;
  /** The name of a model that does these steps. */
  script(...steps: readonly object[]): Promise<string>;
}

async function inPlace(work: (place: Place) => Promise<void>, more: Readonly<Record<string, string>> = {}) {
  await using root = await tempFolder({ "work/.keep": "", "home/.keep": "" });
  const environment = { PATH: process.env.PATH, HOME: root.path, TROUPE_SANDBOX: "off", ...more };
  const runtime = createRuntime({ environment, home: root.at("home") });
  let scripts = 0;
  try {
    await work({
      root,
      folder: root.at("work"),
      runtime,
      async script(...steps) {
        const name = `script-${++scripts}.json`;
        await root.files({ [name]: JSON.stringify({ steps, otherwise: { say: "hm" } }) });
        return `faux:${join(root.path, name)}`;
      },
    });
  } finally {
    await runtime.close();
  }
}

const call = (name: string, args: object) => ({ call: { name, arguments: args } });

/** A session in which the main agent and then an agent of its have called a model. */
async function writeLog(runtime: Runtime, cwd: string): Promise<string> {
  const log = await runtime.store.create("11111111-1111-4111-8111-111111111111");
  const timestamp = new Date().toISOString();
  const producer = { version: 1, producer: "troupe", copilotVersion: "0" };
  const start = { sessionId: log.sessionId, ...producer, startTime: timestamp, context: { cwd } };
  const events = [
    { id: "1", parentId: null, type: "session.start", data: start },
    { id: "2", parentId: "1", type: "user.message", data: { content: "x" } },
    { id: "3", parentId: "2", type: "troupe.usage", data: usageOf("large") },
    { id: "4", parentId: "3", type: "troupe.usage", data: usageOf("small"), agentId: "explore-1" },
  ];
  for (const event of events) await log.append({ ...event, timestamp } as SessionEvent, { barrier: true });
  await log.close();
  return log.sessionId;
}

function usageOf(model: string): object {
  const tokens = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  return { turnId: "0", provider: "work", model, costUsd: 0, durationMs: 1, attempts: 1, ...tokens };
}
