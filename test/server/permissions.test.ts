import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage();
  },
  () => stage[Symbol.asyncDispose](),
);

/** A session whose client notes what it is asked and refuses it. */
async function refusing() {
  const asked: string[] = [];
  const session = await stage.client.createSession({
    onPermissionRequest: (request) => {
      asked.push(request.kind);
      return { kind: "reject" };
    },
  });
  return { session, asked };
}
const write = (path: string) => calls(["create", { path, file_text: "x" }]);

describe("permissions, as a client decides", () => {
  it("no client is asked while everything is allowed, and it is asked again afterwards", async () => {
    const { session, asked } = await refusing();
    expect(await session.rpc.permissions.setApproveAll({ enabled: true })).toEqual({ success: true });
    stage.play(write("free.txt"), says("Written."));
    await session.sendAndWait("Write free.txt");
    expect(existsSync(stage.folder.at("work/free.txt"))).toBe(true);
    expect(asked).toEqual([]);
    await session.rpc.permissions.setApproveAll({ enabled: false });
    stage.play(write("asked.txt"));
    await session.sendAndWait("Write asked.txt");
    expect(existsSync(stage.folder.at("work/asked.txt"))).toBe(false);
    expect(asked).toEqual(["write"]);
  });

  it("a client's denial wins over every allow rule", async () => {
    const { session, asked } = await refusing();
    await session.rpc.permissions.configure({
      approveAllToolPermissionRequests: true,
      rules: { approved: [{ kind: "write", argument: null }], denied: [{ kind: "write", argument: "secret.txt" }] },
    });
    stage.play(write("secret.txt"), write("plain.txt"), says("Done what I may."));
    await session.sendAndWait("Write both");
    expect(existsSync(stage.folder.at("work/secret.txt"))).toBe(false);
    expect(existsSync(stage.folder.at("work/plain.txt"))).toBe(true);
    expect(asked).toEqual([]);
    const rule = { kind: "commands", argument: "echo" };
    expect(await session.rpc.permissions.modifyRules({ scope: "session", add: [rule] })).toEqual({ success: true });
    stage.play(write("secret.txt"), says("Still not."));
    await session.rpc.permissions.modifyRules({ scope: "session", removeAll: true });
    await session.sendAndWait("Try again");
    expect(existsSync(stage.folder.at("work/secret.txt"))).toBe(false);
    await expect(
      session.rpc.permissions.modifyRules({ scope: "session", add: [{ kind: "nonsense", argument: null }] }),
    ).rejects.toThrow(/nonsense/);
  });

  it("a client opens one more folder to the tools, and no other", async () => {
    await mkdir(stage.folder.at("more"), { recursive: true });
    await mkdir(stage.folder.at("other"), { recursive: true });
    const { session } = await refusing();
    await session.rpc.permissions.setApproveAll({ enabled: true });
    const more = stage.folder.at("more");
    const within = (path: string) => session.rpc.permissions.paths.isPathWithinAllowedDirectories({ path });
    expect(await within(join(more, "a.txt"))).toEqual({ allowed: false });
    expect(await session.rpc.permissions.paths.add({ path: more })).toEqual({ success: true });
    expect(await within(join(more, "a.txt"))).toEqual({ allowed: true });
    stage.play(write(join(more, "a.txt")), write(stage.folder.at("other/a.txt")), says("One of two."));
    await session.sendAndWait("Write both");
    expect(existsSync(join(more, "a.txt"))).toBe(true);
    expect(existsSync(stage.folder.at("other/a.txt"))).toBe(false);
    const { primary, directories } = await session.rpc.permissions.paths.list();
    expect(primary).toBe(stage.folder.at("work"));
    expect(directories).toContain(more);
    await session.rpc.permissions.paths.updatePrimary({ path: more });
    expect(await session.rpc.permissions.paths.isPathWithinWorkspace({ path: join(more, "b") })).toEqual({
      allowed: true,
    });
  });

  it("a client's approvals for a location and trust in a folder are stored", async () => {
    const { session } = await refusing();
    const { rpc } = session;
    const folder = stage.folder.at("work");
    const { locationKey, locationType } = await rpc.permissions.locations.resolve({ workingDirectory: folder });
    expect({ locationKey, locationType }).toEqual({ locationKey: folder, locationType: "dir" });
    await rpc.permissions.locations.addToolApproval({
      locationKey,
      approval: { kind: "commands", commandIdentifiers: ["make"] },
    });
    const applied = await rpc.permissions.locations.apply({ workingDirectory: folder });
    expect(applied.appliedRules).toEqual([{ kind: "shell", argument: "make" }]);
    expect(await rpc.permissions.folderTrust.isTrusted({ path: folder })).toEqual({ trusted: false });
    await rpc.permissions.folderTrust.addTrusted({ path: folder });
    expect(await rpc.permissions.folderTrust.isTrusted({ path: folder })).toEqual({ trusted: true });
  });

  it("a user's own shell commands run without asking, and can be stopped", async () => {
    const { session, asked } = await refusing();
    const { rpc } = session;
    const ran = await rpc.shell.executeUserRequested({ requestId: "one", command: "echo hello" });
    expect(ran).toMatchObject({ success: true, exitCode: 0 });
    expect(ran.output).toContain("hello");
    const told = (await session.getEvents()).filter((event) => event.type.startsWith("tool."));
    expect(told.map(({ type, data }) => ({ type, data }))).toMatchObject([
      { type: "tool.user_requested", data: { toolCallId: ran.toolCallId, arguments: { command: "echo hello" } } },
      { type: "tool.execution_start", data: { toolCallId: ran.toolCallId } },
      {
        type: "tool.execution_complete",
        data: { isUserRequested: true, success: true, result: { content: "hello\n<exited with exit code 0>" } },
      },
    ]);
    expect(await rpc.shell.cancelUserRequested({ requestId: "nobody" })).toEqual({ cancelled: false });
    const sleeping = rpc.shell.executeUserRequested({ requestId: "two", command: "sleep 60" });
    await expect.poll(() => rpc.shell.cancelUserRequested({ requestId: "two" })).toEqual({ cancelled: true });
    expect(await sleeping).toMatchObject({ success: false });
    const { processId } = await rpc.shell.exec({ command: "sleep 60" });
    expect(await rpc.shell.kill({ processId })).toEqual({ killed: true });
    expect(await rpc.shell.kill({ processId })).toEqual({ killed: false });
    expect(asked).toEqual([]);
  });

  it("permanent approvals are stored: addresses in the user's settings, the rest for the location", async () => {
    await using own = await serverStage();
    const fetches = (...urls: string[]) => calls(...urls.map((url) => ["web_fetch", { url }] as const));
    const settings = own.folder.at("home/settings.json");
    await mkdir(own.folder.at("home"), { recursive: true });
    await writeFile(settings, '{\n  // mine\n  "allowedUrls": ["example.invalid"]\n}\n');
    const asked: unknown[] = [];
    const deciding = () =>
      own.client.createSession({
        onPermissionRequest: (request) => {
          asked.push(request.kind === "url" ? request.url : request.kind);
          if (request.kind !== "url") return { kind: "approve-permanently", domain: "" };
          return { kind: "approve-permanently", domain: new URL(request.url).hostname };
        },
      });
    const session = await deciding();
    own.play(fetches("http://127.0.0.1:9/a"), fetches("http://127.0.0.1:9/b"), write("kept.txt"), says("Done."));
    await session.sendAndWait("Fetch and write");
    expect(asked).toEqual(["http://127.0.0.1:9/a", "write"]);
    expect(await own.folder.read("home/settings.json")).toBe(
      '{\n  // mine\n  "allowedUrls": ["example.invalid", "http://127.0.0.1:9"]\n}\n',
    );
    const completed = (await session.getEvents()).flatMap((event) =>
      event.type === "permission.completed" ? [event.data.result.kind] : [],
    );
    expect(completed).toEqual(["approved", "approved-for-location"]);
    const later = await deciding();
    own.play(fetches("http://127.0.0.1:9/c"), fetches("http://127.0.0.1:10/"), write("kept.txt"), says("Done."));
    await later.sendAndWait("Again");
    expect(asked.slice(2)).toEqual(["http://127.0.0.1:10/"]);
  });

  it("an address is approved for the session only if it was asked about", async () => {
    const asked: string[] = [];
    const session = await stage.client.createSession({
      onPermissionRequest: (request) => {
        if (request.kind === "url") asked.push(request.url);
        return { kind: "no-result" };
      },
    });
    const fetches = (url: string) => calls(["web_fetch", { url }]);
    stage.play(fetches("https://one.invalid/a"), fetches("https://one.invalid/b"), says("Done."));
    const idle = new Promise((resolve) => session.on("session.idle", resolve));
    await session.send("Fetch");
    await expect.poll(() => asked.length).toBe(1);
    const [item] = (await session.rpc.permissions.pendingRequests()).items;
    const decide = (result: Parameters<typeof session.rpc.permissions.handlePendingPermissionRequest>[0]["result"]) =>
      session.rpc.permissions.handlePendingPermissionRequest({ requestId: item?.requestId ?? "", result });
    await expect(decide({ kind: "approve-permanently", domain: "other.invalid" })).rejects.toThrow(/does not cover/);
    expect(await decide({ kind: "approve-for-session", domain: "one.invalid" })).toEqual({ success: true });
    await idle;
    expect(asked).toEqual(["https://one.invalid/a"]);
    const kept = await stage.folder.read("home/settings.json").catch(() => "");
    expect(kept).not.toContain("one.invalid");
  });
});
