/** An agent whose answer must fit a JSON Schema. troupe checks it and sends it back until it fits. */
import { approveAll, createClient } from "troupe/sdk";
import { calls, forAgent, modelServer, says } from "troupe/testing";
import * as z from "zod";

// One schema for both sides: the agent gets it as JSON Schema, the program parses the answer with it.
const Verdict = z.object({ verdict: z.enum(["pass", "fail"]), reasons: z.array(z.string()) });

const start = {
  name: "review",
  agent_type: "explore",
  description: "Review the change",
  prompt: "Review the last change.",
  // As plain JSON: a model sends it the same way.
  output_schema: JSON.parse(JSON.stringify(z.toJSONSchema(Verdict))),
};
await using model = await modelServer({
  steps: [
    calls(["task", start]),
    says("The review is done."),
    // The first answer does not fit. The agent is told why and answers again.
    forAgent("explore", says("Looks good to me!"), says('{"verdict": "pass", "reasons": ["small and tested"]}')),
  ],
});

await using client = await createClient();
const session = await client.createSession({
  provider: { baseUrl: model.baseUrl, modelId: "scripted" },
  onPermissionRequest: approveAll,
});
const answers: string[] = [];
session.on("assistant.message", ({ agentId, data }) => {
  if (agentId === "review") answers.push(data.content);
});
await session.sendAndWait("Have the last change reviewed.");

console.log(`answers of the agent: ${answers.length}`);
console.log(Verdict.parse(JSON.parse(answers.at(-1) ?? "")));
