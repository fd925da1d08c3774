import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { SignIns } from "../../src/web/sign-ins.ts";
import { oauthServer } from "../mcp/oauth-server.ts";

it("a sign-in from the page does not send the secret that the environment holds for `troupe mcp login`", async () => {
  const server = await oauthServer();
  server.clients.set("robot", { secret: "s3cret" });
  const robot = { url: server.url, oauthClientId: "robot", oauthGrantType: "client_credentials" };
  await using folder = await tempFolder({
    "home/mcp-config.json": JSON.stringify({ mcpServers: { robot } }),
    "work/a": "",
  });
  const home = folder.at("home");
  const signIns = new SignIns({
    environment: { HOME: home, TROUPE_HOME: home, TROUPE_MCP_CLIENT_SECRET: "s3cret" },
    folderOf: async () => folder.at("work"),
    reconnect: async () => undefined,
    onChange: () => undefined,
  });
  await expect(signIns.begin("s", "robot")).rejects.toThrow("none is stored");
  expect(server.asked.filter((what) => what.startsWith("token"))).toEqual([]);
});
