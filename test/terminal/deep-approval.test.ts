import { expect, it } from "vitest";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { Client } from "../../src/sdk/client.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcess } from "../../src/server/in-process.ts";
import { joinableServer } from "../../src/server/joinable.ts";
import { TerminalSession } from "../../src/terminal/session.ts";
import { calls, otherwise, says, type WantedCall } from "../../src/testing/index.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { blockedBy, openAttention } from "../../src/view/waits.ts";

const userText = ({ messages }: ModelRequest): string =>
  JSON.stringify(messages.filter(({ role }) => role === "user").at(-1) ?? "");

/** Each agent starts the next one and waits for it; the third asks to write a file. */
const reply = otherwise((request) => {
  if (request.messages.at(-1)?.role === "tool") return says("done");
  const level = Number(/level (\d)/.exec(userText(request))?.[1] ?? 0);
  const next: WantedCall =
    level === 3
      ? ["create", { path: "deep.txt", file_text: "deep\n" }]
      : [
          "task",
          {
            agent_type: "general-purpose",
            name: `level${level + 1}`,
            description: "go deeper",
            prompt: `level ${level + 1}`,
            mode: "sync",
          },
        ];
  return calls(next);
});

it("the approval of an agent at depth 3 is in every client, and the first answer closes it everywhere", async () => {
  await using folder = await tempFolder({ "work/a.txt": "a\n" });
  await using model = await modelServer({ steps: [reply] });
  const home = folder.at("home");
  const environment = {
    PATH: process.env.PATH ?? "",
    TROUPE_HOME: home,
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "scripted",
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_SANDBOX: "off",
  };
  const cwd = folder.at("work");
  await using own = await createClient({ connection: inProcess({ environment, cwd, isJoinable: true }) });
  const open = (client: Client, resumeId: string | undefined) =>
    TerminalSession.open({
      client,
      cwd: resumeId === undefined ? cwd : undefined,
      resumeId,
      onChange: () => undefined,
    });
  const first = await open(own, undefined);
  const join = async (): Promise<Client> => {
    await expect.poll(() => joinableServer(home, process.pid)).toBeDefined();
    const server = await joinableServer(home, process.pid);
    return createClient({ connection: { kind: "tcp", host: "127.0.0.1", port: 0, ...server } });
  };
  await using one = await join();
  const attached = await open(one, first.id);
  await using two = await join();
  const heard: string[] = [];
  await two.resumeSession(first.id, {
    onEvent: (event) => {
      if (event.type === "permission.requested") heard.push(`asks ${event.agentId}`);
      if (event.type === "permission.completed") heard.push(`answered ${event.agentId}`);
    },
  });
  const asks = ({ view }: TerminalSession): readonly string[] =>
    openAttention(view).map((item) => `${item.agentId} blocks ${blockedBy(view, item).length - 1}`);

  await first.send("level 0", "steer");
  const expected = ["level3 blocks 3"];
  await expect.poll(() => [asks(first), asks(attached)]).toEqual([expected, expected]);
  await expect.poll(() => heard).toEqual(["asks level3"]);
  expect(first.view.agents.get("level3")?.depth).toBe(3);

  const [item] = openAttention(attached.view);
  if (!item) throw new Error("no request is open");
  expect(await attached.decide(item, { kind: "approve-once" })).toBe(true);
  await expect.poll(() => [asks(first), asks(attached)]).toEqual([[], []]);
  await expect.poll(() => heard).toEqual(["asks level3", "answered level3"]);
  expect(await first.decide(item, { kind: "reject" })).toBe(false);
});
