/**
 * A process is killed with `kill -9` while a tool runs. Another one resumes the session: the conversation is whole,
 * and the interrupted call is not run again.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { approveAll, createClient, defineTool } from "troupe/sdk";
import { inProcess } from "troupe/server";
import { calls, modelServer, says, tempFolder } from "troupe/testing";

const [program = "", role, home = "", baseUrl = "", sessionId = ""] = process.argv.slice(1);
if (role === "worker") await work();
else await killAndResume();

/** Runs in a child process, with the server inside it. The tool never returns. */
async function work(): Promise<void> {
  const deploy = defineTool("deploy", {
    description: "Deploys the program.",
    handler: () => {
      process.send?.("deploying");
      return new Promise<string>(() => undefined);
    },
  });
  const client = await createClient({ connection: inProcess({ environment: process.env, home }) });
  const session = await client.createSession({
    sessionId,
    provider: { baseUrl, modelId: "scripted" },
    tools: [deploy],
    onPermissionRequest: approveAll,
  });
  await session.sendAndWait("Deploy it.");
}

async function killAndResume(): Promise<void> {
  await using model = await modelServer({ steps: [calls(["deploy", {}]), says("It was interrupted. I will check.")] });
  await using folder = await tempFolder();
  const id = randomUUID();

  const worker = fork(program, ["worker", folder.path, model.baseUrl, id]);
  await once(worker, "message");
  worker.kill("SIGKILL");
  await once(worker, "exit");
  console.log("killed while the tool was running");

  // Everything that was acknowledged is on disk: another process continues with the same id.
  await using client = await createClient({ home: folder.path });
  const session = await client.resumeSession(id, {
    provider: { baseUrl: model.baseUrl, modelId: "scripted" },
    onPermissionRequest: approveAll,
  });
  for (const { type, data } of await session.getEvents()) {
    if (type === "user.message") console.log(`stored message: ${data.content}`);
    if (type === "tool.execution_complete") console.log(`stored result: ${data.error?.message}`);
  }
  const answer = await session.sendAndWait("What happened?");
  console.log(answer?.data.content);
}
