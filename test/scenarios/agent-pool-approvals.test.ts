import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, type Moves, says, type WantedCall } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { AnyRequest } from "../../src/session/requests/requests.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { realAgentPool } from "../reliability/agent-pool-real.ts";
import { checkTasks } from "../support/task-checker.ts";

/** Plays by the name in the first message: `[[name]]`, else the main agent. One list of calls for each step. */
function playing(plans: Record<string, readonly (readonly WantedCall[])[]>): (request: ModelRequest) => Moves {
  return ({ messages }) => {
    const name = /\[\[(\w+)\]\]/.exec(messages[0]?.content ?? "")?.[1] ?? "main";
    const wanted = plans[name]?.[messages.filter(({ role }) => role === "assistant").length];
    return wanted ? calls(...wanted) : says(`${name} is done: ${messages.at(-1)?.content ?? ""}`);
  };
}

const task = (name: string): WantedCall => [
  "task",
  { description: "work", prompt: `[[${name}]]`, agent_type: "general-purpose", name, mode: "sync" },
  `task-${name}`,
];
const bash = (command: string): WantedCall => ["bash", { command, description: "say" }, `bash-${command}`];

async function stageIn(folder: string, plans: Parameters<typeof playing>[0]) {
  const [home, cwd] = [join(folder, "home"), join(folder, "work")];
  for (const made of [home, cwd]) mkdirSync(made);
  return realAgentPool({ home, cwd, provider: fauxModel(otherwise(playing(plans))), maxConcurrency: 8 });
}

const isAbout = (request: AnyRequest, text: string): boolean =>
  request.kind === "permission" && JSON.stringify(request.permissionRequest).includes(text);

describe("an agent that needs an approval", () => {
  it("an agent waits alone for its approval, and continues when it is given", async () => {
    await using folder = await tempFolder();
    const { session, registry, close } = await stageIn(folder.path, {
      main: [[task("asker"), task("sibling")]],
      asker: [[bash("env echo asked")]],
      sibling: [[bash("env echo beside")], [bash("env echo again")]],
    });
    const answer = deferred<void>();
    session.requests.attach({
      kinds: ["permission"],
      handle: async (request) => {
        if (isAbout(request, "asked")) await answer.promise;
        return { kind: "approved" };
      },
    });
    const sent = session.sendAndWait({ prompt: "go" });
    await expect.poll(() => registry.view("sibling")?.status).toBe("completed");
    expect(registry.view("asker")?.status).toBe("running");
    answer.resolve();
    expect(await sent).toMatchObject({ kind: "done" });
    expect((await registry.report("asker")).answers[0]?.response).toContain("asked");
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
    await close();
  });

  it.each([
    ["approved", { kind: "approved" }, "completed"],
    ["denied", { kind: "denied-interactively-by-user" }, "failed"],
  ] as const)(
    "a permission request names an agent three levels below the main agent, and can be %s",
    async (_name, result, status) => {
      await using folder = await tempFolder();
      const { session, registry, close } = await stageIn(folder.path, {
        main: [[task("one")]],
        one: [[task("two")]],
        two: [[task("three")]],
        three: [[bash("env echo hello from below")]],
      });
      session.requests.attach({
        kinds: ["permission"],
        handle: async (request) => (isAbout(request, "from below") ? result : { kind: "approved" }),
      });
      const outcome = await session.sendAndWait({ prompt: "go" });
      expect(outcome).toMatchObject({ kind: "done" });
      const shell = session.events.filter(
        (event) => event.type.startsWith("permission.") && JSON.stringify(event.data).includes("from below"),
      );
      expect(shell.map(({ type, agentId }) => [type, agentId])).toEqual([["permission.requested", "three"]]);
      const [asked] = shell;
      const requestId = asked?.type === "permission.requested" ? asked.data.requestId : "";
      const ends = session.events.filter(
        (event) => event.type === "permission.completed" && event.data.requestId === requestId,
      );
      expect(ends.map(({ agentId }) => agentId)).toEqual(["three"]);
      expect(registry.view("three")?.status).toBe(status);
      await close();
    },
  );
});
