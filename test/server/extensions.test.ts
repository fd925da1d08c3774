import { approveAll } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

describe("what a session can be given beside tools", () => {
  it("says so where there is nothing", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    expect(await session.rpc.mcp.list()).toMatchObject({ servers: [] });
    await expect(session.rpc.mcp.enable({ serverName: "x" })).rejects.toThrow(/No MCP host initialized/);
    expect(await session.rpc.tools.getCurrentMetadata()).toEqual({ tools: null });
    expect((await stage.client.rpc.tools.list({})).tools.map(({ name }) => name)).toContain("view");
    expect(await session.rpc.instructions.getSources()).toEqual({ sources: [] });
  });
});
