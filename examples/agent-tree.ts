/** Two agents of our own work side by side. The program prints the tree of agents whenever it changes. */
import { type AgentNode, approveAll, createClient } from "troupe/sdk";
import { calls, forAgent, modelServer, says, type WantedCall } from "troupe/testing";

// A scripted model, so that the example needs no key: the main agent delegates twice, then sums up.
const task = (name: string, agent: string): WantedCall => [
  "task",
  { name, agent_type: agent, description: `Ask ${agent}`, prompt: "What is in this folder?" },
];
await using model = await modelServer({
  steps: [
    calls(task("files", "file-lister"), task("risks", "risk-finder")),
    says("Two agents looked at the folder."),
    forAgent("file-lister", calls(["glob", { pattern: "*" }]), says("I listed the files.")),
    forAgent("risk-finder", says("Nothing looks risky.")),
  ],
});

await using client = await createClient();
const session = await client.createSession({
  provider: { baseUrl: model.baseUrl, modelId: "scripted" },
  onPermissionRequest: approveAll,
  customAgents: [
    // An agent can use only the tools it lists, and never more than the agent that starts it.
    {
      name: "file-lister",
      description: "Lists files",
      tools: ["glob", "view"],
      prompt: "You are the file-lister. You list files.",
    },
    { name: "risk-finder", description: "Finds risks", tools: [], prompt: "You are the risk-finder. You find risks." },
  ],
});

// `session.agents` is built from the events. Draw it again when an event changes it.
let drawn = "";
session.on(() => {
  const tree = session.agents.roots.flatMap((agent) => lines(agent, "  ")).join("\n");
  if (tree !== drawn) console.log(`main\n${tree}`);
  drawn = tree;
});

const answer = await session.sendAndWait("Have a look around.");
console.log(answer?.data.content);

function lines(agent: AgentNode, indent: string): string[] {
  const own = `${indent}${agent.id} (${agent.name}): ${agent.status}${agent.lastTool ? `, ${agent.lastTool}` : ""}`;
  return [own, ...agent.children.flatMap((child) => lines(child, `${indent}  `))];
}
