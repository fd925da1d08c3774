import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { Client } from "../../src/sdk/client.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcess } from "../../src/server/in-process.ts";
import { joinableServer } from "../../src/server/joinable.ts";
import type { TrustQuestion } from "../../src/terminal/open-session.ts";
import { runPlain } from "../../src/terminal/plain.ts";
import { calls, type HttpStep, modelServer, says } from "../../src/testing/index.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const PATIENCE_MS = 30_000;
const SESSION = "11111111-2222-4333-8444-555555555555";

/** Plain mode in this process: a model over HTTP, a server, and lines in place of a terminal. */
async function plainStage(steps: readonly HttpStep[] = [], trust?: () => Promise<TrustQuestion | undefined>) {
  const folder = await tempFolder({ "work/readme.md": "hello\n" });
  const model = await modelServer({ steps });
  const home = folder.at("home");
  const cwd = folder.at("work");
  const [input, output] = [new PassThrough(), new PassThrough()];
  let text = "";
  let seen = 0;
  output.on("data", (bytes) => {
    text += String(bytes);
  });
  const environment = {
    ...{ PATH: process.env.PATH ?? "", TROUPE_HOME: home, TROUPE_BASE_URL: model.baseUrl, TROUPE_MODEL: "scripted" },
    ...{ TROUPE_NO_DISCOVERY: "1", TROUPE_SANDBOX: "off" },
  };
  const ended = runPlain({
    ...{ input, output, cwd, version: "0.0.0", sessionChoice: { kind: "id", sessionId: SESSION } },
    connect: () => createClient({ connection: inProcess({ environment, cwd, isJoinable: true }) }),
    trust: trust ?? (async () => undefined),
  });
  /** Waits for a text after the last one that was waited for. */
  const shows = async (wanted: string): Promise<void> => {
    await expect.poll(() => text.slice(seen), { timeout: PATIENCE_MS, interval: 10 }).toContain(wanted);
    seen = text.indexOf(wanted, seen) + wanted.length;
  };
  if (!trust) await shows("ready: model");
  return {
    shows,
    requests: () => model.requests.map(({ body }) => body),
    type: (line: string) => void input.write(`${line}\n`),
    /** Another client of the open session. */
    async join(): Promise<Client> {
      await expect.poll(() => joinableServer(home, process.pid), { timeout: PATIENCE_MS }).toBeDefined();
      const server = await joinableServer(home, process.pid);
      return createClient({ connection: { kind: "tcp", host: "127.0.0.1", port: 0, ...server } });
    },
    async [Symbol.asyncDispose]() {
      input.end();
      await ended;
      await model.close();
      await folder.remove();
    },
  };
}

describe("plain mode", { timeout: 60_000 }, () => {
  it("plain mode shows what a folder would run before it asks for trust", async () => {
    let accepted = 0;
    const items = [
      { kind: "hook", id: "hook:/somewhere/hooks.json#0", shown: "runs at: preToolUse\ncommand: touch x" },
    ];
    const accept = async () => void accepted++;
    await using stage = await plainStage([], async () => ({ folder: "/somewhere", items, accept }));
    await stage.shows(
      "question: /somewhere brings 1 thing that would run or decide something:\n  hook /somewhere/hooks.json#0\n" +
        "  | runs at: preToolUse\n  | command: touch x\n  1. trust this folder as it is now\n  2. work without them\n",
    );
    stage.type("1");
    await stage.shows("ready: model");
    expect(accepted).toBe(1);
  });

  it("plain mode asks for the fields of a form one by one, with menus, defaults, checks and ways out", async () => {
    await using stage = await plainStage();
    await using other = await stage.join();
    const session = await other.resumeSession(SESSION, {});
    const requestedSchema = {
      type: "object" as const,
      properties: {
        name: { type: "string" as const, title: "Your name" },
        seats: { type: "integer" as const, minimum: 1, maximum: 8, default: 2 },
        side: {
          type: "string" as const,
          oneOf: [
            { const: "l", title: "Left" },
            { const: "r", title: "Right" },
          ],
        },
        extras: { type: "array" as const, items: { type: "string" as const, enum: ["light", "heat"] } },
        aisle: { type: "boolean" as const },
        note: { type: "string" as const },
      },
      required: ["name"],
    };
    const asked = session.request("session.ui.elicitation", { message: "Which table?", requestedSchema });
    await stage.shows("form: Which table?");
    await stage.shows("  1. fill in\n  2. decline\n  3. dismiss without an answer\n");
    stage.type("1");
    await stage.shows("field 1 of 6: Your name (string)\n");
    stage.type("");
    await stage.shows("That does not fit: a value is required.");
    stage.type("Ann");
    await stage.shows("field 2 of 6: seats (integer; 1 to 8; default: 2; optional)\n");
    stage.type("9");
    await stage.shows("That does not fit: enter 1 to 8.");
    stage.type("");
    await stage.shows("  1. Left (l)\n  2. Right (r)\n");
    stage.type("/back");
    await stage.shows("field 2 of 6");
    stage.type("4");
    await stage.shows("field 3 of 6");
    stage.type("2");
    await stage.shows("  1. light\n  2. heat\n");
    stage.type("2, light");
    await stage.shows("  1. yes\n  2. no\n");
    stage.type("1");
    await stage.shows("field 6 of 6");
    stage.type("");
    const content = { name: "Ann", seats: 4, side: "r", extras: ["heat", "light"], aisle: true };
    expect(await asked).toEqual({ action: "accept", content });
    for (const [line, action] of [
      ["/decline", "decline"],
      ["/cancel", "cancel"],
    ] as const) {
      const again = session.request("session.ui.elicitation", { message: "Which table?", requestedSchema });
      await stage.shows("1. fill in");
      stage.type("1");
      await stage.shows("field 1 of 6");
      stage.type(line);
      expect(await again).toMatchObject({ action });
    }
    for (const [line, action] of [
      ["2", "decline"],
      ["3", "cancel"],
    ] as const) {
      const again = session.request("session.ui.elicitation", { message: "Which table?", requestedSchema });
      await stage.shows("1. fill in");
      stage.type(line);
      expect(await again).toMatchObject({ action });
    }
  });

  it("plain mode runs commands of the user, and sends their output along unless they are hidden", async () => {
    await using stage = await plainStage([says("I read it.")]);
    stage.type("!echo shared");
    await stage.shows("tool: bash echo shared");
    stage.type("!!echo hushhush");
    await stage.shows("tool: bash echo hushhush (hidden from the model)");
    stage.type("what did I run?");
    await stage.shows("troupe: I read it.");
    const sent = JSON.stringify(stage.requests());
    expect([sent.includes("I ran `echo shared`"), sent.includes("hushhush")]).toEqual([true, false]);
    stage.type("/nothing");
    await stage.shows("error: There is no command /nothing here.");
  });

  it("plain mode offers to approve a plan, and shows it without the marks of Markdown code", async () => {
    await using stage = await plainStage([calls(["exit_plan_mode", { summary: "Two steps." }]), says("I begin.")]);
    stage.type("/plan");
    await stage.shows("Plan mode is on");
    stage.type("plan it");
    await stage.shows("plan to approve: Plan: Two steps.\n  | Two steps.\n  1. approve and start");
    stage.type("1");
    await stage.shows("I begin.");
  });

  it("plain mode returns from words to the menu with an empty line", async () => {
    await using stage = await plainStage([
      calls(["ask_user", { question: "Which colour?", choices: ["red", "blue"] }]),
      says("Blue it is."),
    ]);
    stage.type("ask me");
    await stage.shows("3. answer in words");
    stage.type("3");
    await stage.shows("type it in one line");
    stage.type("");
    await stage.shows("2. blue");
    stage.type("2");
    await stage.shows("troupe: Blue it is.");
  });
});
