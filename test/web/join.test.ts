import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Client } from "../../src/sdk/client.ts";
import { joinableServer } from "../../src/server/joinable.ts";
import { calls, says } from "../../src/testing/index.ts";
import { readStream } from "./events.ts";
import { type WebStage, webStage } from "./stage.ts";

const PROGRAM = join(import.meta.dirname, "../../bin/troupe.js");

interface OtherServer extends AsyncDisposable {
  readonly client: Client;
}

/** A server in a process of its own, which the dashboard can join. */
async function otherServer(stage: WebStage): Promise<OtherServer> {
  const child = spawn(process.execPath, [PROGRAM, "--headless"], {
    cwd: stage.cwd,
    env: { ...stage.environment },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const pid = child.pid ?? 0;
  await expect.poll(() => joinableServer(stage.home, pid)).toBeDefined();
  const server = await joinableServer(stage.home, pid);
  const client = new Client({ connection: { kind: "tcp", host: "127.0.0.1", port: 0, ...server } });
  return {
    client,
    async [Symbol.asyncDispose]() {
      await client.stop();
      child.kill("SIGTERM");
    },
  };
}

it("the page answers a request of a session that another process has open, in that process", async () => {
  const steps = [calls(["bash", { command: "echo hello > made.txt", description: "make" }]), says("made")];
  await using stage = await webStage({ steps });
  await using other = await otherServer(stage);
  const session = await other.client.createSession({ onPermissionRequest: () => new Promise(() => undefined) });
  await using stream = await readStream(stage, `session=${session.sessionId}`);
  await session.send("go");
  await stream.until(({ events }) => events().some(({ type }) => type === "permission.requested"));
  const asked = stream.events().find(({ type }) => type === "permission.requested");
  const requestId = asked?.type === "permission.requested" ? asked.data.requestId : "";
  const answer = { sessionId: session.sessionId, requestId, result: { kind: "approve-once" } };
  const method = "session.permissions.handlePendingPermissionRequest";
  expect(await stage.call(method, answer)).toEqual({ success: true });
  await stream.until(({ events }) =>
    events().some((event) => event.type === "assistant.message" && event.data.content === "made"),
  );
  // The second answer comes too late.
  expect(await stage.call(method, answer)).toEqual({ success: false });
});

it("the page does not change a session that it watches: a denial of its client still holds", async () => {
  const steps = [calls(["bash", { command: "echo hello > made.txt", description: "make" }]), says("ended")];
  await using stage = await webStage({ steps });
  await using other = await otherServer(stage);
  const session = await other.client.createSession({ onPermissionRequest: () => ({ kind: "approve-once" }) });
  const denied = [{ kind: "shell", argument: null }];
  await session.request("session.permissions.configure", { rules: { approved: [], denied } });
  await using stream = await readStream(stage, `session=${session.sessionId}`);
  // The dashboard has joined: it can call the session.
  await stream.until(({ events }) => events().some(({ type }) => type === "session.resume"));
  await stage.call("session.name.set", { sessionId: session.sessionId, name: "watched" });
  await session.send("go");
  await stream.until(({ events }) =>
    events().some((event) => event.type === "assistant.message" && event.data.content === "ended"),
  );
  expect(existsSync(join(stage.cwd, "made.txt"))).toBe(false);
});
