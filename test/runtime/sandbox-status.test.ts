/** Whether commands need a sandbox, and why there is none. */
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { sandboxSource } from "../../src/runtime/permissions/shells.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

describe("the status of the sandbox", () => {
  it.each([
    ["auto", { required: false, absence: expect.stringMatching(/bubblewrap/) }],
    ["required", { required: true, absence: expect.stringMatching(/bubblewrap/) }],
    ["off", { required: false, absence: "The sandbox is switched off." }],
  ])("the status of the sandbox names the reason why there is no sandbox in mode %s", async (mode, status) => {
    await using folder = await tempFolder();
    const source = sandboxSource({ environment: { TROUPE_SANDBOX: mode }, stateRoot: folder.path, disk: nodeDisk });
    const settings = { environmentFiles: false, candidates: [folder.at("missing")] };
    expect(await source.status(false, settings)).toEqual(status);
    await source.close();
  });
});
