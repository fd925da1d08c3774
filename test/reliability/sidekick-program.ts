/**
 * A process to be killed: a session with a sidekick, put together as the command line does.
 * `sidekick-program.mjs <home> <cwd> <sidekick> <event> <agent>`: it dies by SIGKILL when the session tells of that event.
 */
import { createRuntime } from "../../src/runtime/runtime.ts";

const [home = "", cwd = "", scout = "", deadly = "", agent = ""] = process.argv.slice(2);
const runtime = createRuntime({ environment: { PATH: process.env.PATH, HOME: home, TROUPE_SANDBOX: "off" }, home });
const workspace = { agents: [JSON.parse(scout)] };
const session = await runtime.createSession({ sessionId: "one", cwd, model: { name: "alpha/large" }, workspace });
session.subscribe(({ type, agentId = "main" }) => {
  if (type === deadly && agentId === agent) process.kill(process.pid, "SIGKILL");
});
await session.sendAndWait({ prompt: "look" });
await new Promise((resolve) => setTimeout(resolve, 3_000).unref());
await session.close();
await runtime.close();
