import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Client } from "../../src/sdk/client.ts";
import { joinableServer } from "../../src/server/joinable.ts";
import { calls, says } from "../../src/testing/index.ts";
import { readStream } from "./events.ts";
import { webStage } from "./stage.ts";

const PROGRAM = join(import.meta.dirname, "../../bin/troupe.js");

it("answers a request of a session that another process has open, in that process", async () => {
  const steps = [calls(["bash", { command: "echo hello > made.txt", description: "make" }]), says("made")];
  await using stage = await webStage({ steps });
  const child = spawn(process.execPath, [PROGRAM, "--headless"], {
    cwd: stage.cwd,
    env: { ...stage.environment },
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const pid = child.pid ?? 0;
    await expect.poll(() => joinableServer(stage.home, pid), { timeout: 30_000 }).toBeDefined();
    const server = await joinableServer(stage.home, pid);
    await using client = new Client({ connection: { kind: "tcp", host: "127.0.0.1", port: 0, ...server } });
    const session = await client.createSession({ onPermissionRequest: () => new Promise(() => undefined) });
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
  } finally {
    child.kill("SIGTERM");
  }
});
