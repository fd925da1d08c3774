// One process that runs sessions on the file store, as a worker does on Postgres. Started with an IPC channel: each
// message `{ prompts, atOnce }` is answered with `{ tookMs }` or `{ problem }`.
//
//   cluster-jsonl.mjs <home>
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createRuntime } from "../dist/lib/index.js";

const [, , home] = process.argv;
const runtime = createRuntime({ environment: process.env, home });

process.on("disconnect", () => process.exit(0));
process.on("message", async ({ prompts, atOnce }) => {
  const from = performance.now();
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < prompts.length; index = next++) await run(prompts[index]);
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, lane));
    process.send({ tookMs: performance.now() - from });
  } catch (error) {
    process.send({ problem: error.message });
  }
});

async function run(prompt) {
  const sessionId = crypto.randomUUID();
  const cwd = join(`${home}-work`, "workspaces", sessionId);
  mkdirSync(cwd, { recursive: true });
  const permissions = { allTools: true, paths: "all" };
  const session = await runtime.createSession({ sessionId, cwd, permissions, client: { askUser: false } });
  try {
    const outcome = await session.sendAndWait({ prompt });
    if (outcome.kind !== "done") throw new Error(`a session ended as ${outcome.kind}: ${outcome.error?.message}`);
  } finally {
    await session.close();
  }
}
