import { existsSync, readFileSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { policyOf } from "../../src/runtime/permissions/policy.ts";
import type { Answerer } from "../../src/session/requests/broker.ts";
import { story } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { create } from "../../src/tools/files/create.ts";
import { rememberedFiles } from "../../src/tools/files/files.ts";
import { view } from "../../src/tools/files/view.ts";
import { dataOf, type Stage, stage } from "../support/stage.ts";

const write = (name: string) => calls(["create", { path: name, file_text: "x" }]);

/** A session with one file tool and no rules: everything is a question. */
async function asking(
  folder: string,
  steps: Parameters<typeof stage>[0],
  deny: readonly string[] = [],
): Promise<Stage> {
  return stage(steps, {
    tools: [create],
    stamp: systemStamp,
    cwd: folder,
    roots: [folder],
    policy: policyOf({ denyTools: deny }, { roots: [folder], stateRoot: "/nowhere", writable: [] }),
    ports: { files: rememberedFiles({ keep: async () => undefined }) },
  });
}

const answering = (answer: Awaited<ReturnType<NonNullable<Answerer["handle"]>>>): Answerer & { asked: number } => {
  const answerer = {
    asked: 0,
    kinds: ["permission"] as const,
    async handle() {
      answerer.asked++;
      return answer;
    },
  };
  return answerer;
};

describe("a permission request to all attached clients", () => {
  it("a permission request lets an approved call read a path outside the folders, and only that one", async () => {
    await using folder = await tempFolder({ "work/in.txt": "in", "other/out.txt": "out", "other/next.txt": "next" });
    await symlink(folder.at("other/out.txt"), folder.at("other/link.txt"));
    const reading = (path: string) => calls(["view", { path: folder.at(path) }]);
    const { session } = await stage(
      [reading("other/out.txt"), reading("other/link.txt"), reading("other/next.txt"), says("done")],
      {
        tools: [view],
        stamp: systemStamp,
        cwd: folder.at("work"),
        roots: [folder.at("work")],
        policy: policyOf({}, { roots: [folder.at("work")], stateRoot: "/nowhere", writable: [] }),
        ports: { files: rememberedFiles({ keep: async () => undefined }) },
      },
    );
    session.requests.attach({
      kinds: ["permission"],
      async handle(request) {
        const path =
          request.kind === "permission" && "path" in request.permissionRequest && request.permissionRequest.path;
        return { kind: String(path).includes("next") ? "denied-by-rules" : "approved" } as never;
      },
    });
    await session.sendAndWait({ prompt: "go" });
    const ends = dataOf(session.events, "tool.execution_complete");
    expect(ends.map(({ success, result }) => [success, result?.content])).toEqual([
      [true, "1. out"],
      [true, "1. out"],
      [false, undefined],
    ]);
  });

  it("a call runs after its approval, and the log has request, answer and verdict in order", async () => {
    await using folder = await tempFolder();
    const { session } = await asking(folder.path, [write("a.txt"), says("done")]);
    session.requests.attach(answering({ kind: "approved" }));
    await session.sendAndWait({ prompt: "go" });
    expect(readFileSync(join(folder.path, "a.txt"), "utf8")).toBe("x");
    expect(story(session.events).filter((line) => /permission|execution/.test(line))).toEqual([
      "root tool.execution_start",
      "root permission.requested",
      "root permission.completed",
      "root troupe.permission",
      "root tool.execution_complete",
    ]);
    expect(dataOf(session.events, "permission.requested")[0]?.permissionRequest).toMatchObject({
      kind: "write",
      diff: expect.stringContaining("+x"),
    });
  });

  it("a permission request is sent once when it is approved for the session", async () => {
    await using folder = await tempFolder();
    const { session } = await asking(folder.path, [write("a.txt"), write("b.txt"), says("done")]);
    const person = answering({ kind: "approved-for-session", approval: { kind: "write" } });
    session.requests.attach(person);
    await session.sendAndWait({ prompt: "go" });
    expect(person.asked).toBe(1);
    expect(existsSync(join(folder.path, "b.txt"))).toBe(true);
  });

  it("a declined permission request prevents the call, and the model reads the user's message", async () => {
    await using folder = await tempFolder();
    const { session, model } = await asking(folder.path, [write("a.txt"), says("sorry")]);
    session.requests.attach(answering({ kind: "denied-interactively-by-user", feedback: "use b.txt" }));
    await session.sendAndWait({ prompt: "go" });
    expect(existsSync(join(folder.path, "a.txt"))).toBe(false);
    expect(model.requests[1]?.messages[2]?.content).toBe("The user rejected this tool call. They said: use b.txt");
  });

  it("a request declined without a message ends the answer, and the next prompt continues from there", async () => {
    await using folder = await tempFolder();
    const { session, model } = await asking(folder.path, [write("a.txt"), says("what instead?")]);
    session.requests.attach(answering({ kind: "denied-interactively-by-user" }));
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "done" });
    expect(model.requests).toHaveLength(1);
    expect(dataOf(session.events, "tool.execution_complete")).toMatchObject([
      { success: false, error: { code: "rejected", message: "The user rejected this tool call." } },
    ]);
    await session.sendAndWait({ prompt: "b.txt" });
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
  });

  it("an answer for the location is stored, and the request is not sent again", async () => {
    await using folder = await tempFolder();
    const { session } = await asking(folder.path, [write("a.txt"), write("b.txt"), says("done")]);
    const person = answering({ kind: "approved-for-location", approval: { kind: "write" }, locationKey: folder.path });
    session.requests.attach(person);
    await session.sendAndWait({ prompt: "go" });
    expect(person.asked).toBe(1);
    expect(existsSync(join(folder.path, "b.txt"))).toBe(true);
  });

  it("a permission request is not sent when a rule denies the call", async () => {
    await using folder = await tempFolder();
    const { session } = await asking(folder.path, [write("a.txt"), says("sorry")], ["write"]);
    const person = answering({ kind: "approved" });
    session.requests.attach(person);
    await session.sendAndWait({ prompt: "go" });
    expect(person.asked).toBe(0);
    expect(dataOf(session.events, "troupe.permission")).toMatchObject([
      { decision: "denied", by: "rule", rule: "write" },
    ]);
  });

  it("an abort ends a permission request, and the next answer is valid", async () => {
    await using folder = await tempFolder();
    const { session } = await asking(folder.path, [write("a.txt"), says("next")]);
    session.requests.attach({ kinds: ["permission"], handle: () => new Promise(() => undefined) });
    const sent = session.sendAndWait({ prompt: "go" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    session.abort();
    expect((await sent).kind).toBe("aborted");
    expect(await session.sendAndWait({ prompt: "again" })).toEqual({ kind: "done", answer: "next" });
  });
});
