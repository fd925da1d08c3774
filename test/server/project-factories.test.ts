import { mkdir, readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { approveAll, type PermissionRequest, RuntimeConnection } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import { says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

/** A project's extension that runs its factories by itself, as soon as it has joined, and writes down what came of it. */
const extension = `import { defineFactory, joinSession } from "@github/copilot-sdk/extension";
import { appendFileSync } from "node:fs";
const define = (name) => defineFactory({
  meta: { name, description: "Asks.", phases: [] },
  run: ({ agent, args }) => agent("Question " + args.at),
});
const session = await joinSession({ factories: [define("one"), define("two")] });
const run = async (name, at, limits) => {
  const end = await session.factory.run(name, { args: { at }, ...(limits && { limits }) }).catch((error) => ({ status: error.message }));
  appendFileSync("said.txt", name + " " + end.status + "\\n");
};
await run("one", 1);
await run("one", 2);
await run("two", 3);
await run("two", 4);
await run("one", 5, { maxTotalSubagents: 1000 });
appendFileSync("said.txt", "over\\n");`;

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage();
  },
  () => stage[Symbol.asyncDispose](),
);

describe("the extension of a project that runs its own factories", () => {
  it("a project's factory asks first, once for each factory and for more agents, and a no is final", async () => {
    const workingDirectory = stage.folder.at("project");
    await mkdir(`${workingDirectory}/.github/extensions/busy`, { recursive: true });
    await writeFile(`${workingDirectory}/.github/extensions/busy/extension.mjs`, extension);
    const env = { ...stage.environment(), TROUPE_FEATURE_FLAGS: "EXTENSIONS" };
    const client = stage.newClient({ connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env }) });
    const asked: PermissionRequest[] = [];
    stage.play(says("a"), says("b"));
    const session = await client.createSession({
      requestExtensions: true,
      workingDirectory,
      onPermissionRequest: (request) => {
        asked.push(request);
        return JSON.stringify(request).includes("may start 256 agents") && !JSON.stringify(request).includes("two")
          ? { kind: "approve-once" }
          : { kind: "reject" };
      },
    });
    const said = async () =>
      (await readFile(`${workingDirectory}/said.txt`, "utf8").catch(() => "")).trim().split("\n");
    await expect.poll(async () => (await said()).at(-1)).toBe("over");
    const no = (name: string) => expect.stringMatching(`^${name} .*may not run its factory ${name}`);
    expect(await said()).toEqual(["one completed", "one completed", no("two"), no("two"), no("one"), "over"]);
    const capability = (name: string, agents: number) => ({
      kind: "extension-permission-access",
      extensionName: "busy",
      capabilities: [`run its factory "${name}", which may start ${agents} agents each time`],
    });
    expect(asked).toMatchObject([capability("one", 256), capability("two", 256), capability("one", 1000)]);
    await session.disconnect();
    await client.stop();
  });

  it("a project's factory is not asked about when the user's own client runs it", async () => {
    const workingDirectory = stage.folder.at("quiet");
    await mkdir(`${workingDirectory}/.github/extensions/calm`, { recursive: true });
    const calm = extension.slice(0, extension.indexOf("const run = async"));
    await writeFile(`${workingDirectory}/.github/extensions/calm/extension.mjs`, calm);
    const env = { ...stage.environment(), TROUPE_FEATURE_FLAGS: "EXTENSIONS" };
    const client = stage.newClient({ connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env }) });
    let questions = 0;
    const session = await client.createSession({
      requestExtensions: true,
      workingDirectory,
      onPermissionRequest: (request, invocation) => {
        questions++;
        return approveAll(request, invocation);
      },
    });
    const states = async () => (await session.rpc.extensions.list()).extensions.map(({ status }) => status).join();
    await expect.poll(states).toBe("running");
    stage.play(says("yes"));
    expect(await session.factory.run("one", { args: { at: 1 } })).toMatchObject({ status: "completed", result: "yes" });
    expect(questions).toBe(0);
    await session.disconnect();
    await client.stop();
  });
});
