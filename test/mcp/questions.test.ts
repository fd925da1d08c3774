/** Questions of MCP servers, answered by the clients of a session that a server process hosts. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { approveAll, createClient, type SessionConfig } from "../../src/sdk/index.ts";
import { inProcess } from "../../src/server/index.ts";
import { calls, type HttpStep, modelServer, says } from "../../src/testing/index.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";

const versionOne = fileURLToPath(new URL("./servers/version-one.mjs", import.meta.url));

describe("a question of an MCP server", () => {
  it("a question of an MCP server reaches the elicitation handler of the client, and its answer reaches the server", async () => {
    const asked: unknown[] = [];
    const { results } = await play({
      tools: ["ask", "capabilities"],
      config: {
        onPermissionRequest: approveAll,
        onElicitationRequest: (request) => {
          asked.push(request);
          return { action: "accept", content: { name: "Yorick" } };
        },
      },
    });
    expect(JSON.parse(results.ask ?? "")).toEqual({ action: "accept", content: { name: "Yorick" } });
    expect(asked).toEqual([
      {
        message: "Your name?",
        mode: "form",
        elicitationSource: "one",
        toolCallId: expect.any(String),
        requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      },
    ]);
    expect(JSON.parse(results.capabilities ?? "")).toMatchObject({ elicitation: { form: {}, url: {} }, sampling: {} });
  });

  it("a question of an MCP server gets the defaults of its form where the client fills in nothing (SEP-1034)", async () => {
    const onElicitationRequest = () => ({ action: "accept" as const, content: { acts: 4 } });
    const { results } = await play({
      tools: ["prefilled"],
      config: { onPermissionRequest: approveAll, onElicitationRequest },
    });
    expect(JSON.parse(results.prefilled ?? "")).toEqual({
      action: "accept",
      content: { part: "Hamlet", acts: 4, verse: true },
    });
  });

  it("a question of an MCP server is never offered where no client can answer it", async () => {
    const { results } = await play({ tools: ["capabilities", "ask"], config: { onPermissionRequest: approveAll } });
    const capabilities = JSON.parse(results.capabilities ?? "");
    expect([capabilities.elicitation, capabilities.sampling]).toEqual([undefined, undefined]);
    expect(results.ask).toMatch(/does not support.*elicitation/i);
  });
});

describe("a sampling request of an MCP server", () => {
  it("a sampling request of an MCP server runs on the session's model once allowed, and counts as usage", async () => {
    const permissions: unknown[] = [];
    const { results, seen, usage } = await play({
      tools: ["sample"],
      sampled: says("hi there"),
      config: {
        onElicitationRequest: () => ({ action: "cancel" }),
        onPermissionRequest: (request) => {
          permissions.push(request);
          return { kind: "approve-once" };
        },
      },
    });
    expect(results.sample).toBe("hi there");
    expect(permissions).toContainEqual(
      expect.objectContaining({
        kind: "custom-tool",
        toolName: "mcp-sampling",
        args: { messages: "user: Say hi", maxTokens: 10 },
      }),
    );
    const sampling = seen.find(({ last }) => last === "Say hi");
    expect(sampling).toEqual({ last: "Say hi", tools: 0 });
    expect(usage).toContain("mcp-sampling");
  });

  it("a sampling request of an MCP server is refused, without a model call, when the user does not allow it", async () => {
    const { results, seen } = await play({
      tools: ["sample"],
      config: {
        onElicitationRequest: () => ({ action: "cancel" }),
        onPermissionRequest: (request) => ({ kind: request.kind === "mcp" ? "approve-once" : "reject" }),
      },
    });
    expect(results.sample).toMatch(/The user did not allow this sampling request/);
    expect(seen.map(({ last }) => last)).not.toContain("Say hi");
  });
});

describe("the connection of a server that may ask questions", () => {
  it("an MCP server that may ask questions has one connection per session; other sessions share one", async () => {
    await using folder = await place();
    const config = { onPermissionRequest: approveAll };
    const answering = { ...config, onElicitationRequest: () => ({ action: "decline" as const }) };
    const connection = inProcess({ environment: {}, home: folder.at("state"), cwd: folder.at("work") });
    await using client = await createClient({ connection });
    const pids: number[] = [];
    for (const how of [config, config, answering, answering]) {
      const { results } = await play({ tools: ["capabilities"], config: how, client, folder });
      pids.push(JSON.parse(results.capabilities ?? "").pid);
    }
    const [first, second, third, fourth] = pids;
    expect(first).toBe(second);
    expect(new Set([second, third, fourth]).size).toBe(3);
  });
});

describe("the folders reported to an MCP server", () => {
  const told = async (config: SessionConfig, folder: TempFolder): Promise<string[]> => {
    const { results } = await play({
      tools: ["roots"],
      config: { onPermissionRequest: approveAll, ...config },
      folder,
    });
    return JSON.parse(results.roots ?? "").map(({ uri }: { uri: string }) => uri.split("/").at(-1));
  };

  it("an MCP server gets the working folder and the added ones as roots", async () => {
    await using folder = await place();
    expect(await told({ additionalDirectories: [folder.at("more")] }, folder)).toEqual(["work", "more"]);
  });

  it("an MCP server gets the working folder as its root where every path is allowed", async () => {
    await using folder = await place();
    const environment = {};
    const where = { environment, home: folder.at("state"), cwd: folder.at("work") };
    await using client = await createClient({
      connection: inProcess({ ...where, defaults: { permissions: { paths: "all" } } }),
    });
    const config = { onPermissionRequest: approveAll };
    const { results } = await play({ tools: ["roots"], config, folder, client });
    expect(JSON.parse(results.roots ?? "")).toEqual([{ uri: `file://${folder.at("work")}`, name: "work" }]);
  });
});

const place = () => tempFolder({ "work/a.txt": "", "more/b.txt": "" });

/** Has the model call each tool of the server once, in turn, in a session of its own. */
async function play(what: {
  tools: readonly string[];
  config: SessionConfig;
  sampled?: HttpStep;
  folder?: TempFolder;
  client?: Awaited<ReturnType<typeof createClient>>;
}) {
  const { tools, config, sampled } = what;
  await using own = what.folder ? undefined : await place();
  const folder = what.folder ?? own;
  if (!folder) throw new Error("There is no folder.");
  await using model = await modelServer({
    steps: [...tools.flatMap((tool) => [calls([`one-${tool}`, {}]), ...(sampled ? [sampled] : [])]), says("done")],
  });
  const connection = inProcess({ environment: {}, home: folder.at("state"), cwd: folder.at("work") });
  await using ownClient = what.client ? undefined : await createClient({ connection });
  const client = what.client ?? ownClient;
  const session = await client?.createSession({
    provider: { baseUrl: model.baseUrl, modelId: "scripted" },
    workingDirectory: folder.at("work"),
    mcpServers: { one: { type: "local", command: process.execPath, args: [versionOne], tools: ["*"] } },
    ...config,
  });
  await session?.sendAndWait("go");
  const events = (await session?.getEvents()) ?? [];
  const names = new Map<string, string>();
  const results: Record<string, string> = {};
  const usage: string[] = [];
  for (const event of events) {
    if (event.type === "tool.execution_start") names.set(event.data.toolCallId, event.data.toolName.slice(4));
    if (event.type === "troupe.usage") usage.push(event.data.turnId);
    if (event.type !== "tool.execution_complete") continue;
    const { toolCallId, result, error } = event.data;
    results[names.get(toolCallId) ?? ""] = result?.content ?? error?.message ?? "";
  }
  const seen = model.requests.map(({ request }) => ({
    last: String(request?.messages.at(-1)?.content),
    tools: request?.tools.length,
  }));
  return { results, seen, usage };
}
