import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type PermissionRequest, RuntimeConnection } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import { permissionText } from "../../src/protocol/permission-text.ts";
import type { PermissionRequest as OwnRequest } from "../../src/session/requests/requests.ts";
import { calls, says } from "../../src/testing/index.ts";
import { hasBubblewrap } from "../shell/bubblewrap.ts";
import { greeterDescription, greeterProgram } from "../support/greeter.ts";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage();
  },
  () => stage[Symbol.asyncDispose](),
);
const works = await hasBubblewrap();

/** Agrees to everything once, and notes what it was asked. */
function agreeing() {
  const asked: PermissionRequest[] = [];
  const onPermissionRequest = (request: PermissionRequest) => {
    asked.push(request);
    return { kind: "approve-for-session" } as const;
  };
  return { asked, onPermissionRequest };
}
const shown = (request: PermissionRequest | undefined) => permissionText(request as unknown as OwnRequest);

describe("a request to a client over the wire", () => {
  it.runIf(works)(
    "a permission request says that a command leaves the sandbox, and a session answer counts once",
    async () => {
      const { asked, onPermissionRequest } = agreeing();
      const session = await stage.client.createSession({ onPermissionRequest });
      const leave = calls(["bash", { command: "echo \u202eout", unsandboxed: true }]);
      stage.play(leave, leave, says("Done."));
      await session.sendAndWait("Leave, twice");
      const leaving = asked.filter((one) => one.kind === "shell" && one.requestSandboxBypass);
      expect(leaving).toHaveLength(2);
      expect(leaving[0]).toMatchObject({
        canOfferSessionApproval: false,
        warning: expect.stringMatching(/^Runs OUTSIDE the sandbox: .* It has 1 invisible characters\.$/),
      });
      expect(shown(leaving[0])).toMatchObject({
        title: "OUTSIDE the sandbox: echo <U+202E>out",
        text: expect.stringMatching(/^Runs OUTSIDE the sandbox: /),
        canAllowForSession: false,
      });
      await session.disconnect();
    },
  );

  it("a permission request over the wire says that there is no sandbox", async () => {
    const env = { ...stage.environment(), TROUPE_SANDBOX: "off" };
    const client = stage.newClient({ connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env }) });
    const { asked, onPermissionRequest } = agreeing();
    const session = await client.createSession({ onPermissionRequest });
    stage.play(calls(["bash", { command: "make x" }]), says("Done."));
    await session.sendAndWait("Run it");
    expect(asked).toMatchObject([{ kind: "shell", warning: expect.stringMatching(/^No sandbox: /) }]);
    await client.stop();
  });

  it("a permission request over the wire has the real name, the whole description and the arguments of an MCP tool", async () => {
    await writeFile(stage.folder.at("greeter.cjs"), greeterProgram);
    const { asked, onPermissionRequest } = agreeing();
    const session = await stage.client.createSession({
      onPermissionRequest,
      mcpServers: {
        greeter: { type: "stdio", command: process.execPath, args: [stage.folder.at("greeter.cjs")], tools: ["*"] },
      },
    });
    stage.play(calls(["greeter-delete_all", { path: "/home" }]), says("Done."));
    await session.sendAndWait("Greet");
    expect(asked).toMatchObject([
      {
        kind: "mcp",
        serverName: "greeter",
        toolName: "delete_all",
        toolTitle: "Say hello",
        toolDescription: greeterDescription.replace("\u200b", "<U+200B>"),
        args: { path: "/home" },
      },
    ]);
    expect(shown(asked[0]).text).toContain("Says hello.<U+200B> Really.");
    expect(shown(asked[0]).text).toContain("THE END");
    await session.disconnect();
  });

  it("a permission request over the wire offers no answer for the session where none can be given", async () => {
    const { asked, onPermissionRequest } = agreeing();
    const session = await stage.client.createSession({ onPermissionRequest });
    const write = (path: string) => calls(["create", { path, file_text: "x" }]);
    stage.play(write(".github/workflows/a.yml"), write("plain.txt"), says("Done."));
    await session.sendAndWait("Write");
    expect(asked).toMatchObject([
      { kind: "write", canOfferSessionApproval: false },
      { kind: "write", canOfferSessionApproval: true },
    ]);
    await session.disconnect();
  });
});
