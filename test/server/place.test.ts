import { execFileSync } from "node:child_process";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { approveAll } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage();
    await stage.client.start();
  },
  () => stage[Symbol.asyncDispose](),
);

const open = (workingDirectory = stage.folder.at("work")) =>
  stage.client.createSession({ onPermissionRequest: approveAll, workingDirectory });

describe("the working directory of a session", () => {
  it("the working directory is changed by a call, for its tools too, and the conversation stays", async () => {
    const session = await open();
    stage.play(says("Noted."));
    await session.sendAndWait("My cat is called Momo.");
    await mkdir(stage.folder.at("elsewhere"), { recursive: true });
    await writeFile(stage.folder.at("elsewhere/here.txt"), "the other place\n");
    const workingDirectory = stage.folder.at("elsewhere");
    expect(await session.rpc.metadata.setWorkingDirectory({ workingDirectory })).toEqual({ workingDirectory });
    expect((await session.rpc.metadata.snapshot()).workingDirectory).toBe(workingDirectory);
    stage.play(calls(["view", { path: "here.txt" }]), says("Seen."));
    await session.sendAndWait("What is here?");
    const shown = JSON.stringify(stage.model.requests.at(-1)?.body);
    expect(shown).toContain("the other place");
    expect(shown).toContain("Momo");
    const nowhere = { workingDirectory: stage.folder.at("nowhere") };
    await expect(session.rpc.metadata.setWorkingDirectory(nowhere)).rejects.toThrow(/nowhere is not a folder/);
  });

  it("the working directory is announced when more is known of it, not when it is another folder", async () => {
    const session = await open();
    const told: unknown[] = [];
    session.on("session.context_changed", ({ data }) => told.push(data));
    const known = {
      cwd: stage.folder.at("work"),
      branch: "b",
      repositoryHost: "github.com",
      hostType: "github" as const,
    };
    await session.rpc.metadata.recordContextChange({ context: { ...known, cwd: "/elsewhere" } });
    await session.rpc.metadata.recordContextChange({ context: known });
    await expect.poll(() => told).toEqual([known]);
  });

  it("a client sees what git finds changed, beside the index and since the branch began", async () => {
    const root = stage.folder.at("repository");
    await mkdir(root);
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: root });
    git("init", "-q", "-b", "main");
    const put = (name: string, content: string) => writeFile(`${root}/${name}`, content);
    await Promise.all(["kept", "changed", "gone", "moved"].map((name) => put(`${name}.txt`, `${name}\n`.repeat(9))));
    git("add", ".");
    git("commit", "-qm", "one");
    git("checkout", "-qb", "work");
    await rename(`${root}/moved.txt`, `${root}/renamed.txt`);
    git("add", ".");
    git("commit", "-qm", "two");
    await put("changed.txt", "other\n");
    await rm(`${root}/gone.txt`);
    await put("new file.txt", "brand new\n");
    const session = await open(root);
    const unstaged = await session.rpc.workspaces.diff({ mode: "unstaged" });
    const short = ({ changes }: typeof unstaged) =>
      changes.map(({ changeType, path, oldPath }) => [changeType, ...(oldPath ? [oldPath] : []), path].join(" "));
    expect(short(unstaged)).toEqual(["modified changed.txt", "deleted gone.txt", "added new file.txt"]);
    expect(unstaged).toMatchObject({ requestedMode: "unstaged", mode: "unstaged", isFallback: false });
    expect(unstaged.changes[0]?.diff).toContain("\n+other\n");
    expect(unstaged.changes[1]?.diff).toContain("\n-gone\n");
    expect(unstaged.changes[2]?.diff).toContain("\n+brand new\n");
    const branch = await session.rpc.workspaces.diff({ mode: "branch" });
    expect(short(branch)).toEqual([
      ...["modified changed.txt", "deleted gone.txt", "renamed moved.txt renamed.txt", "added new file.txt"],
    ]);
    expect(branch).toMatchObject({ mode: "branch", baseBranch: "main", isFallback: false });
    const bare = await (await open()).rpc.workspaces.diff({ mode: "branch" });
    expect(bare).toMatchObject({ requestedMode: "branch", changes: [], isFallback: true });
  });
});

describe("a question beside the conversation", () => {
  it("a side question knows the conversation, is counted, and is not stored", async () => {
    const session = await open();
    stage.play(says("Noted."), says("Momo."));
    await session.sendAndWait("My cat is called Momo.");
    const before = (await session.getEvents()).filter(({ type }) => type.endsWith(".message")).length;
    expect(await session.rpc.ui.ephemeralQuery({ question: "What is my cat called?" })).toEqual({ answer: "Momo." });
    const asked = JSON.stringify(stage.model.requests.at(-1)?.body);
    expect(asked).toContain("My cat is called Momo.");
    const after = (await session.getEvents()).filter(({ type }) => type.endsWith(".message")).length;
    expect(after).toBe(before);
    stage.play(says("Hello."));
    await session.sendAndWait("Hi");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).not.toContain("What is my cat called?");
    expect((await session.rpc.usage.getMetrics()).modelMetrics["faux-model"]?.requests.count).toBe(3);
  });
});

describe("opening by known facts of a session", () => {
  it("opening creates a session, finds one by id prefix or as the last, and reports when there is none", async () => {
    const { rpc } = stage.client;
    const made = await rpc.sessions.open({ kind: "create", options: { name: "the opened one" } });
    expect(made).toMatchObject({ status: "created", startupPrompts: [] });
    const sessionId = made.sessionId ?? "";
    expect(await rpc.sessions.open({ kind: "attach", sessionId })).toMatchObject({ status: "resumed", sessionId });
    await rpc.sessions.close({ sessionId });
    expect(await rpc.sessions.open({ kind: "attach", sessionId })).toEqual({ status: "not_found" });
    const byPrefix = { kind: "resume" as const, sessionId: sessionId.slice(0, 13) };
    expect(await rpc.sessions.open(byPrefix)).toMatchObject({ status: "resumed", sessionId });
    await rpc.sessions.close({ sessionId });
    expect(await rpc.sessions.open({ kind: "resumeLast" })).toMatchObject({ status: "resumed" });
    const context = { cwd: stage.folder.at("nobody-was-here") };
    expect(await rpc.sessions.open({ kind: "resumeLast", context })).toEqual({ status: "not_found" });
    await expect(rpc.sessions.open({ kind: "cloud" })).rejects.toThrow(/only local sessions/);
  });

  it("opening accepts a call without params in either form", async () => {
    const list = stage.client.rpc.tools.list as () => ReturnType<typeof stage.client.rpc.tools.list>;
    expect((await list()).tools.length).toBeGreaterThan(3);
  });
});
