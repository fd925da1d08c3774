/** The files of a fork: secrets and git's own files are not copied, neither into its folder nor into the repository. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { calls, says } from "../../src/testing/index.ts";
import { type WebStage, webStage } from "./stage.ts";

const git = (folder: string, ...args: string[]): string =>
  execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
    encoding: "utf8",
  });

function commitAll(folder: string): void {
  git(folder, "init", "-q");
  git(folder, "add", ".");
  git(folder, "commit", "-qm", "first");
}

const allows = (rule: string): Readonly<Record<string, string>> => ({
  "home/settings.json": JSON.stringify({ permissions: { allow: [rule] } }),
});

/** Runs the model's steps to their end, then forks at the first event of this type. */
async function forked(
  stage: WebStage,
  type: SessionEvent["type"],
): Promise<{ cwd: string | undefined; notice?: string }> {
  const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "go" });
  let events: readonly SessionEvent[] = [];
  await expect
    .poll(async () => {
      events = await stage.call("web.events", { sessionId });
      return events.some(({ type: known }) => known === "session.idle" || known === "assistant.turn_end");
    })
    .toBe(true);
  const toEventId = events.find((event) => event.type === type)?.id;
  return stage.call("web.fork", { sessionId, toEventId });
}

/** All contents in the repository, also those that no branch names. */
function storedIn(folder: string): string {
  return git(folder, "cat-file", "--batch-all-objects", "--batch");
}

describe("the files of a fork", () => {
  it("the files of a fork omit .env files and the targets of their links, and store them nowhere", async () => {
    await using stage = await webStage({ steps: [says("hello")] });
    commitAll(stage.cwd);
    execFileSync(
      "sh",
      [
        "-c",
        "mkdir -p conf sub; echo CANARY-1 >.env; echo CANARY-2 >sub/.env.local; echo CANARY-3 >conf/dev; echo kept >.env.example",
      ],
      {
        cwd: stage.cwd,
      },
    );
    symlinkSync("../conf/dev", join(stage.cwd, "sub/.env"));
    const { cwd = "" } = await forked(stage, "user.message");
    expect(readFileSync(join(cwd, ".env.example"), "utf8")).toBe("kept\n");
    expect([".env", "sub/.env.local", "conf/dev"].filter((name) => existsSync(join(cwd, name)))).toEqual([]);
    expect(storedIn(stage.cwd)).not.toContain("CANARY");
  });

  it("the files of a fork omit uncommitted files that a rule denies to read", async () => {
    const rules = { permissions: { deny: ["read(notes/**)"] } };
    const files = { "home/settings.json": JSON.stringify(rules) };
    await using stage = await webStage({ steps: [says("hello")], files });
    commitAll(stage.cwd);
    execFileSync("sh", ["-c", "mkdir notes; echo CANARY >notes/plan.txt; echo kept >other.txt"], { cwd: stage.cwd });
    const { cwd = "" } = await forked(stage, "user.message");
    expect(readFileSync(join(cwd, "other.txt"), "utf8")).toBe("kept\n");
    expect(existsSync(join(cwd, "notes"))).toBe(false);
    expect(storedIn(stage.cwd)).not.toContain("CANARY");
  });

  it("the files of a fork omit a file to which a removed .env link led", async () => {
    await using stage = await webStage({ steps: [says("hello")] });
    commitAll(stage.cwd);
    const secret = join(stage.cwd, "real-secrets");
    execFileSync("sh", ["-c", "echo CANARY >real-secrets; mkdir -p ../home/sandbox"], { cwd: stage.cwd });
    const known = [{ root: stage.cwd, path: secret }];
    writeFileSync(join(stage.cwd, "../home/sandbox/linked-secrets.json"), JSON.stringify(known));
    const { cwd = "" } = await forked(stage, "user.message");
    expect(existsSync(join(cwd, "real-secrets"))).toBe(false);
    expect(storedIn(stage.cwd)).not.toContain("CANARY");
  });

  it("the files of a fork do not include git's own files, which a later command changed", async () => {
    const command = "git -c user.name=a -c user.email=a@example.com commit -qam later; echo late > readme.md";
    const steps = [calls(["bash", { command, description: "commit" }]), says("done")];
    await using stage = await webStage({ steps, files: { ...allows("shell") } });
    commitAll(stage.cwd);
    const fork = await forked(stage, "user.message");
    expect(fork.notice).toBeUndefined();
    expect(readFileSync(join(fork.cwd ?? "", "readme.md"), "utf8")).toBe("hello\n");
    expect(git(fork.cwd ?? "", "branch", "--show-current")).toMatch(/^troupe\/.*\/fork\n$/);
  });
});
