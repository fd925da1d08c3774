import { homedir } from "node:os";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { requestedSandbox } from "../../src/runtime/permissions/sandbox-settings.ts";
import { sandboxSource } from "../../src/runtime/permissions/shells.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const place = { root: "/srv/project", stateRoot: "/srv/state" };

describe("settings of the sandbox", () => {
  it("the sandbox settings are translated into options of the sandbox", () => {
    const requested = requestedSandbox(
      {
        mode: "required",
        network: { allowedHosts: ["registry.example:8080"], allowLocalNetwork: true },
        writablePaths: ["~/.cache/tool", "/srv/cache/"],
        deniedPaths: ["~/letters", "secret.pem", "/srv/keys"],
        allowEnvironmentFiles: true,
        limits: { processes: 10.5, fileBytes: 1024 },
      },
      place,
    );
    expect(requested).toEqual({
      sandbox: {
        mode: "required",
        allowedHosts: ["registry.example:8080"],
        localNetwork: true,
        writable: [`${homedir()}/.cache/tool`, "/srv/cache"],
        denied: [`${homedir()}/letters`, "/srv/project/secret.pem", "/srv/keys"],
        environmentFiles: true,
      },
      limits: { processes: 10, fileBytes: 1024 },
    });
    expect(requestedSandbox(undefined, place)).toEqual({ sandbox: {}, limits: {} });
  });

  it.each([
    [{ writablePaths: ["cache"] }, /writablePaths: cache/],
    [{ writablePaths: ["/tmp/.."] }, /writablePaths: \//],
    [{ writablePaths: ["/srv/state/x"] }, /writablePaths: \/srv\/state\/x/],
    [{ limits: { memory: 5 } }, /limits\.memory/],
    [{ network: { allowedHosts: ["https://x"] } }, /"https:\/\/x" cannot be used/],
  ])("sandbox settings that cannot be enforced are refused: %j", (settings, message) => {
    expect(() => requestedSandbox(settings, place)).toThrow(message);
  });

  it("sandbox settings create a sandbox of their own, and TROUPE_SANDBOX overrides their mode", async () => {
    await using folder = await tempFolder();
    const source = (environment: Record<string, string>) =>
      sandboxSource({ environment, stateRoot: folder.at("state"), disk: nodeDisk });
    const open = source({});
    const asked = [open.get(false), open.get(false, {}), open.get(false, { denied: ["/a"] }), open.get(true, {})];
    expect(new Set(await Promise.all(asked)).size).toBe(3);
    const request = { workspace: [folder.path], cwd: folder.path, ownTerminal: false, detached: false };
    const prepared = async (environment: Record<string, string>, mode: "off" | "required") =>
      (await source(environment).get(false, { mode })).prepare({ ...request, unsandboxed: true });
    expect(await prepared({}, "off")).toEqual({ kind: "plain" });
    await expect(prepared({}, "required")).rejects.toThrow(/must run in a sandbox here/);
    await expect(prepared({ TROUPE_SANDBOX: "required" }, "off")).rejects.toThrow(/must run in a sandbox here/);
    expect(await prepared({ TROUPE_SANDBOX: "off" }, "required")).toEqual({ kind: "plain" });
  });
});
