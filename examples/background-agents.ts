/** An agent works in the background. The program sends it a message, and the main agent hears of both answers. */
import { approveAll, createClient } from "troupe/sdk";
import { calls, forAgent, modelServer, says } from "troupe/testing";

const start = { name: "scout", agent_type: "explore", description: "Look", prompt: "Look around.", mode: "background" };
await using model = await modelServer({
  steps: [
    calls(["task", start]),
    says("The scout is on its way."),
    says("The scout found three files."),
    says("The newest one is a.txt."),
    forAgent("explore", says("Three files."), says("a.txt is the newest.")),
  ],
});

await using client = await createClient();
const session = await client.createSession({
  provider: { baseUrl: model.baseUrl, modelId: "scripted" },
  onPermissionRequest: approveAll,
});
session.on("assistant.message", ({ agentId, data }) => {
  if (data.content !== "") console.log(`${agentId ?? "main"}: ${data.content}`);
});

// A background agent does not block the main agent. `sendAndWait` waits for both.
await session.sendAndWait("Send a scout.");

// The scout is idle now: it keeps its conversation and can be asked again.
const { tasks } = await session.rpc.tasks.list();
console.log(tasks.map(({ id, status }) => `${id} is ${status}`).join(", "));

const idle = new Promise<void>((resolve) => session.on("session.idle", () => resolve()));
await session.request("session.tasks.sendMessage", { id: "scout", message: "Which one is the newest?" });
await idle;
