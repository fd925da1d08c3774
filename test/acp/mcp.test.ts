import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { describe, expect, it } from "vitest";
import { calls, forAgent, says } from "../../src/testing/index.ts";
import { oauthServer } from "../mcp/oauth-server.ts";
import { withEditor } from "./stage.ts";

const program = fileURLToPath(new URL("../mcp/servers/version-one.mjs", import.meta.url));
const one = { name: "one", command: process.execPath, args: [program], env: [] };
const lastRequest = (editor: { model: { requests: readonly { body: unknown }[] } }): string =>
  JSON.stringify(editor.model.requests.at(-1)?.body);

describe("MCP servers that an editor brings", () => {
  it("an editor's MCP servers work over HTTP and SSE, with the headers that the editor gives", async () => {
    const heard: (string | undefined)[] = [];
    const greeter = (): McpServer => {
      const server = new McpServer({ name: "greeter", version: "1.0.0" });
      server.registerTool("greet", { description: "Says hello" }, async () => ({
        content: [{ type: "text", text: "hello from afar" }],
      }));
      return server;
    };
    const sse = new Map<string, SSEServerTransport>();
    const address = await listening(async (request, response) => {
      heard.push(request.headers.authorization);
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
      if (pathname === "/sse") {
        const transport = new SSEServerTransport("/messages", response);
        sse.set(transport.sessionId, transport);
        await greeter().connect(transport as never);
      } else if (pathname === "/messages") {
        await sse.get(searchParams.get("sessionId") ?? "")?.handlePostMessage(request, response);
      } else {
        const transport = new StreamableHTTPServerTransport({});
        await greeter().connect(transport as never);
        await transport.handleRequest(request, response);
      }
    });
    const headers = [{ name: "authorization", value: "Bearer of-the-editor" }];
    const mcpServers = [
      { type: "http", name: "near", url: `${address.url}/mcp`, headers },
      { type: "sse", name: "far", url: `${address.url}/sse`, headers },
    ];
    try {
      const steps = [calls(["near-greet", {}], ["far-greet", {}]), says("Both.")];
      await withEditor({ steps }, async (editor) => {
        const { sessionId } = await editor.open({ mcpServers });
        await editor.prompt(sessionId, "Greet.");
        expect(editor.updates("tool_call_update").map(({ status }) => status)).toEqual(["completed", "completed"]);
        expect(lastRequest(editor).match(/hello from afar/g)).toHaveLength(2);
        expect(new Set(heard)).toEqual(new Set(["Bearer of-the-editor"]));
      });
    } finally {
      address.close();
    }
  });

  it("an editor's MCP server asks the user in a form, and gets the answer", async () => {
    const steps = [calls(["one-ask", {}]), says("Asked.")];
    await withEditor({ steps, capabilities: { elicitation: { form: {} } } }, async (editor) => {
      const { sessionId } = await editor.open({ mcpServers: [one] });
      editor.fillIn = () => ({ action: "accept", content: { name: "Yorick" } });
      await editor.prompt(sessionId, "Ask.");
      expect(editor.forms).toMatchObject([
        {
          mode: "form",
          sessionId,
          toolCallId: editor.updates("tool_call")[0]?.toolCallId,
          message: "one asks: Your name?",
          requestedSchema: { properties: { name: { type: "string" } }, required: ["name"] },
        },
      ]);
      expect(lastRequest(editor)).toContain("Yorick");
    });
  });

  it("an MCP server's question for an agent is shown at the call of that agent", async () => {
    const task = calls([
      "task",
      { agent_type: "general-purpose", name: "helper", description: "Ask", prompt: "Ask for the name." },
    ]);
    const helper = ({ messages }: { readonly messages: readonly { readonly role: string }[] }): boolean =>
      JSON.stringify(messages.find(({ role }) => role === "user")).includes("Ask for the name.");
    const steps = [task, forAgent(helper, calls(["one-ask", {}]), says("Yorick.")), says("Done.")];
    await withEditor({ steps, capabilities: { elicitation: { form: {} } } }, async (editor) => {
      const { sessionId } = await editor.open({ mcpServers: [one] });
      editor.fillIn = () => ({ action: "accept", content: { name: "Yorick" } });
      await editor.prompt(sessionId, "Have it asked.");
      const asking = editor.updates("tool_call").find(({ name }) => name === "one-ask");
      expect(asking?.toolCallId).toMatch(/^helper:/);
      expect(editor.forms).toMatchObject([{ sessionId, toolCallId: asking?.toolCallId }]);
    });
  });

  it("an MCP server asks the user of an editor to open an address, and continues", async () => {
    const steps = [calls(["one-visit", {}]), says("Visited.")];
    await withEditor({ steps, capabilities: { elicitation: { form: {}, url: {} } } }, async (editor) => {
      const { sessionId } = await editor.open({ mcpServers: [one] });
      editor.fillIn = () => ({ action: "accept" });
      await editor.prompt(sessionId, "Visit.");
      expect(editor.forms).toMatchObject([
        { mode: "url", url: "https://example.com/in", message: "one asks: Sign in" },
      ]);
      expect(lastRequest(editor)).toContain("welcome");
      const [asked, over] = ["elicitation/create", "elicitation/complete"].map((name) =>
        editor.wire.filter(({ method }) => method === name).map(({ params }) => params as { elicitationId?: string }),
      );
      expect(over).toEqual([{ elicitationId: asked?.[0]?.elicitationId }]);
    });
  });

  it("/mcp login in an editor opens the address, and the tools are available afterwards", async () => {
    const oauth = await oauthServer();
    const mcpServers = [{ type: "http", name: "far", url: oauth.url, headers: [] }];
    const steps = [says("No tools."), says("Now they are there.")];
    await withEditor({ steps, capabilities: { elicitation: { url: {} } } }, async (editor) => {
      const { sessionId } = await editor.open({ mcpServers });
      await editor.prompt(sessionId, "Look.");
      expect(lastRequest(editor)).not.toContain('"far-');
      editor.fillIn = async (request) => {
        await fetch("url" in request ? String(request.url) : ""); // the browser follows the redirect to the agent
        return { action: "accept" };
      };
      await editor.prompt(sessionId, "/mcp login far");
      expect(editor.said(sessionId)).toContain(`${oauth.origin}/authorize`);
      await expect.poll(() => oauth.asked).toContain("mcp tools/list");
      expect(editor.forms).toMatchObject([{ mode: "url", sessionId, message: "Sign in to the MCP server far." }]);
      await editor.prompt(sessionId, "Look again.");
      expect(lastRequest(editor)).toContain('"far-');
    });
  });

  it("/mcp login in an editor ends when the user declines, and refuses a local server", async () => {
    const oauth = await oauthServer();
    const mcpServers = [{ type: "http", name: "far", url: oauth.url, headers: [] }, one];
    await withEditor({ capabilities: { elicitation: { url: {} } } }, async (editor) => {
      const { sessionId } = await editor.open({ mcpServers });
      editor.fillIn = () => ({ action: "decline" });
      await editor.prompt(sessionId, "/mcp login far");
      const address = /http:\S+authorize\S+/.exec(editor.said(sessionId))?.[0] ?? "";
      const { port } = new URL(new URL(address).searchParams.get("redirect_uri") ?? "");
      const closed = (): Promise<boolean> =>
        new Promise((resolve) => {
          const socket = connect({ host: "127.0.0.1", port: Number(port) }, () => resolve(!socket.destroy()));
          socket.once("error", () => resolve(true));
        });
      await expect.poll(closed).toBe(true);
      await editor.prompt(sessionId, "/mcp login one");
      expect(editor.said(sessionId)).toContain("there is nowhere to sign in");
    });
  });

  it("an MCP server does not see the capability for forms where the editor has none", async () => {
    const steps = [calls(["one-capabilities", {}]), says("None.")];
    await withEditor({ steps }, async (editor) => {
      const { sessionId } = await editor.open({ mcpServers: [one] });
      await editor.prompt(sessionId, "Look.");
      expect(lastRequest(editor)).toContain("pid");
      expect(lastRequest(editor)).not.toContain("elicitation");
    });
  });
});

async function listening(handler: RequestListener): Promise<{ readonly url: string; close(): void }> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
