import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { plainStyle } from "../../src/terminal/screen/style.ts";
import { blockLines } from "../../src/terminal/transcript/block-lines.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { appWithEvents, eventMaker } from "./fake-session.ts";

type Maker = ReturnType<typeof eventMaker>;

const words = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 160 }).map((text) => text.trim() || "word");

/** Kinds of things that happen in a session; each gives one or more events. */
const happening = fc.oneof(
  fc.record({ kind: fc.constant("prompt" as const), text: words }),
  fc.record({ kind: fc.constant("answer" as const), parts: fc.array(words, { minLength: 1, maxLength: 5 }) }),
  fc.record({ kind: fc.constant("tool" as const), output: fc.array(words, { maxLength: 30 }), ok: fc.boolean() }),
  fc.record({ kind: fc.constant("agent" as const), ends: fc.boolean() }),
  fc.record({ kind: fc.constant("ask" as const), closes: fc.boolean() }),
  fc.record({ kind: fc.constant("notice" as const), text: words }),
);

let serial = 0;

function eventsOf(make: Maker, what: typeof happening extends fc.Arbitrary<infer T> ? T : never): SessionEvent[] {
  const n = ++serial;
  switch (what.kind) {
    case "prompt":
      return [
        make("user.message", { content: what.text, messageId: `m${n}` }),
        make("assistant.turn_start", { turnId: `t${n}` }),
      ];
    case "answer": {
      const content = what.parts.join("\n\n");
      return [
        make("assistant.message_start", { messageId: `a${n}` }, { ephemeral: true }),
        ...what.parts.map((deltaContent) =>
          make(
            "assistant.message_delta",
            { messageId: `a${n}`, deltaContent: `${deltaContent}\n\n` },
            { ephemeral: true },
          ),
        ),
        make("assistant.message", { messageId: `a${n}`, content: `${content}\n\n`, toolRequests: [] }),
        make("assistant.turn_end", { turnId: `t${n}` }),
        make("session.idle", {}, { ephemeral: true }),
      ];
    }
    case "tool":
      return [
        make("tool.execution_start", { toolCallId: `c${n}`, toolName: "bash", arguments: { command: `run ${n}` } }),
        make("tool.execution_complete", {
          toolCallId: `c${n}`,
          success: what.ok,
          ...(what.ok ? { result: { content: what.output.join("\n") } } : { error: { message: "it failed" } }),
        }),
      ];
    case "agent": {
      const about = { toolCallId: `k${n}`, agentName: "explore", agentDisplayName: "Explore", description: "looks" };
      const started = make("troupe.task_created", {
        taskId: `agent-${n}`,
        mode: "background",
        prompt: "look",
        ...about,
      });
      const ended = make("troupe.task_state", { taskId: `agent-${n}`, from: "running", to: "completed" });
      return what.ends ? [started, ended] : [started];
    }
    case "ask": {
      const request = {
        ...{ kind: "shell", fullCommandText: `rm ${n}`, intention: "clean", commands: [], possiblePaths: [] },
        ...{ possibleUrls: [], hasWriteFileRedirection: false, canOfferSessionApproval: false },
      };
      const asked = make("permission.requested", { requestId: `r${n}`, permissionRequest: request });
      const closed = make("permission.completed", { requestId: `r${n}`, result: { kind: "approved" } });
      return what.closes ? [asked, closed] : [asked];
    }
    case "notice":
      return [make("session.info", { infoType: "test", message: what.text })];
  }
}

describe("the terminal under random events, resizes and keys", () => {
  it("the terminal writes each finished line once, in order, above one live region, and keeps typed text", async () => {
    await using folder = await tempFolder();
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            happens: fc.array(happening, { maxLength: 3 }),
            typed: fc.stringMatching(/^[a-z ]{0,6}$/),
            size: fc.option(
              fc.record({ columns: fc.integer({ min: 60, max: 180 }), rows: fc.integer({ min: 16, max: 50 }) }),
            ),
          }),
          { minLength: 3, maxLength: 10 },
        ),
        async (steps) => {
          const make = eventMaker();
          const stage = await appWithEvents({ columns: 100, rows: 30, home: folder.path });
          const fold = new SessionView();
          const expected: string[] = [];
          let draft = "";
          const start = make("session.start", {
            sessionId: "s",
            version: 1,
            producer: "t",
            copilotVersion: "1",
            startTime: "",
          });
          for (const event of [start]) {
            stage.emit(event);
            fold.apply(event);
          }
          for (const { happens, typed, size } of steps) {
            for (const event of happens.flatMap((what) => eventsOf(make, what))) {
              stage.emit(event);
              fold.apply(event);
              for (const block of fold.drain()) expected.push(...blockLines(block, { style: plainStyle }));
            }
            if (size) stage.resize(size.columns, size.rows);
            // A card may have become armed on an empty prompt; words that begin with a blank decide nothing.
            const text = draft === "" && typed !== "" ? ` ${typed}` : typed;
            stage.send(text);
            draft += text;
            await stage.settle();
          }
          const shown = stage.terminal.lines();
          expect(shown.filter((line) => / Esc /.test(line) && /^interactive/.test(line))).toHaveLength(1);
          const flat = expected.flatMap((line) => line.split("\n")).map((line) => line.trimEnd());
          expect(shown.slice(0, flat.length)).toEqual(flat);
          expect(stage.app.editor.text).toBe(draft);
          expect(stage.requests.filter(({ method }) => method.includes("handlePending"))).toEqual([]);
          await stage.close();
        },
      ),
      { numRuns: process.env.TROUPE_SLOW ? 30 : 6 },
    );
  });

  it("the terminal writes at most 4 kB per frame with 30 agents at work, and nothing when idle", async () => {
    await using folder = await tempFolder();
    const make = eventMaker();
    const stage = await appWithEvents({ columns: 200, rows: 50, home: folder.path });
    for (let index = 0; index < 30; index++) {
      const about = {
        toolCallId: `k${index}`,
        agentName: "explore",
        agentDisplayName: "Explore",
        description: "d".repeat(80),
      };
      stage.emit(
        make("troupe.task_created", {
          taskId: `agent-${index}`,
          mode: "background",
          prompt: "p".repeat(500),
          ...about,
        }),
      );
      stage.emit(make("troupe.task_state", { taskId: `agent-${index}`, from: "queued", to: "running" }));
    }
    await stage.settle();
    const before = stage.writes.length;
    for (let round = 0; round < 20; round++) {
      for (let index = 0; index < 30; index++) {
        const data = { toolCallId: `c${round}-${index}`, toolName: "bash", arguments: { command: "x".repeat(300) } };
        stage.emit(make("tool.execution_start", data, { agentId: `agent-${index}` }));
      }
      stage.send("x");
      await stage.settle();
    }
    const frames = stage.writes.slice(before).map((bytes) => Buffer.byteLength(bytes));
    expect(Math.max(...frames)).toBeLessThanOrEqual(4_096);
    for (let index = 0; index < 30; index++) {
      stage.emit(make("troupe.task_state", { taskId: `agent-${index}`, from: "running", to: "completed" }));
    }
    await stage.settle();
    await stage.settle();
    const atRest = stage.writes.length;
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(stage.writes.length).toBe(atRest);
    await stage.close();
  });

  it("the terminal fills a server's form field by field, lets a wrong value be corrected, and keeps the draft", async () => {
    await using folder = await tempFolder();
    const make = eventMaker();
    const stage = await appWithEvents({ columns: 100, rows: 30, home: folder.path });
    stage.send("half a draft");
    const requestedSchema = {
      type: "object",
      properties: {
        name: { type: "string", title: "Name" },
        count: { type: "integer" },
        colour: { oneOf: [{ const: "red" }, { const: "blue", title: "Sky" }] },
      },
    };
    const data = { requestId: "f1", message: "Who are you?", mode: "form", requestedSchema, elicitationSource: "docs" };
    stage.emit(make("elicitation.requested", data, { ephemeral: true }));
    await stage.settle();
    stage.send("\u0001");
    stage.send("y");
    stage.send("Ann\r");
    stage.send("many\r");
    await stage.settle();
    expect(stage.terminal.screen().join("\n")).toContain("enter integer");
    expect(stage.app.editor.text).toBe("many");
    stage.send("\u00153\r");
    await stage.settle();
    expect(stage.terminal.screen().join("\n")).toContain("field 3 of 3");
    stage.send("green\r");
    await stage.settle();
    expect(stage.terminal.screen().join("\n")).toContain("▌ Who are you?\n▌ 1  red\n▌ 2  Sky (blue)");
    stage.send("\u00152\r");
    await stage.settle();
    expect(stage.requests.filter(({ method }) => method === "session.ui.handlePendingElicitation")).toEqual([
      {
        method: "session.ui.handlePendingElicitation",
        params: { requestId: "f1", result: { action: "accept", content: { name: "Ann", count: 3, colour: "blue" } } },
      },
    ]);
    expect(stage.app.editor.text).toBe("half a draft");
    await stage.close();
  });

  it("the terminal shows the address of a sign-in in the card and in its whole text, and names no server that it lacks", async () => {
    await using folder = await tempFolder();
    const make = eventMaker();
    const stage = await appWithEvents({ columns: 100, rows: 30, home: folder.path });
    const screen = (): string => stage.terminal.screen().join("\n");
    const url = "https://auth.example/authorize?state=1";
    const data = { requestId: "u1", message: "Sign in to the MCP server work.", mode: "url", url };
    stage.emit(make("elicitation.requested", data, { ephemeral: true }));
    await stage.settle();
    expect(screen()).toContain("▌ Address to open\n▌ Sign in to the MCP server work.");
    expect(screen()).toContain(`▌ Open it yourself: ${url}`);
    stage.send("\u0001v");
    await stage.settle();
    expect(screen()).toContain(`  Sign in to the MCP server work.\nOpen it yourself: ${url}`);
    expect(screen()).not.toContain("```");
    await stage.close();
  });

  it("the terminal explains the choices for a plan and for a limit, and sends the chosen one", async () => {
    await using folder = await tempFolder();
    const make = eventMaker();
    const stage = await appWithEvents({ columns: 100, rows: 30, home: folder.path });
    const actions = ["interactive", "exit_only"];
    const plan = { requestId: "p1", summary: "Read it", planContent: "", actions, recommendedAction: "interactive" };
    stage.emit(make("exit_plan_mode.requested", plan, { ephemeral: true }));
    await stage.settle();
    const choices = () => stage.terminal.screen().filter((line) => /^▌ \d {2}/.test(line));
    expect(choices()).toEqual(["▌ 1  approve and start (recommended)", "▌ 2  approve, but do not start"]);
    stage.send("\u00012");
    stage.emit(make("exit_plan_mode.completed", { requestId: "p1", approved: true }, { ephemeral: true }));
    const limit = { requestId: "l1", maxAiCredits: 5, usedAiCredits: 6 };
    stage.emit(make("session_limits_exhausted.requested", limit, { ephemeral: true }));
    await stage.settle();
    expect(choices()).toEqual(["▌ 1  remove the limit", "▌ 2  stop here"]);
    stage.send("\u00011");
    await stage.settle();
    expect(stage.requests.slice(-2).map(({ params }) => params)).toEqual([
      { requestId: "p1", response: { approved: true, selectedAction: "exit_only" } },
      { requestId: "l1", response: { action: "unset" } },
    ]);
    await stage.close();
  });

  it("the transcript has a line when the user decides for an agent, and none when a hook does", async () => {
    await using folder = await tempFolder();
    const make = eventMaker();
    const stage = await appWithEvents({ columns: 100, rows: 30, home: folder.path });
    const about = { toolCallId: "k", agentName: "explore", agentDisplayName: "Explore", description: "looks" };
    const agent = { taskId: "explore-2", mode: "background", prompt: "look", ...about };
    stage.emit(make("troupe.task_created", agent));
    stage.emit(make("troupe.task_state", { taskId: "explore-2", from: "queued", to: "running" }));
    const decide = async (requestId: string, fullCommandText: string, result: object) => {
      const permissionRequest = {
        ...{ kind: "shell", fullCommandText, intention: "", commands: [], possiblePaths: [], possibleUrls: [] },
        ...{ hasWriteFileRedirection: false, canOfferSessionApproval: true },
      };
      const more = { agentId: "explore-2" };
      stage.emit(make("permission.requested", { requestId, permissionRequest }, more));
      stage.emit(make("permission.completed", { requestId, result }, more));
    };
    await decide("r1", "npm test", { kind: "approved" });
    await decide("r2", "rm -r dist", { kind: "denied-interactively-by-user", feedback: "leave it" });
    await decide("r3", "npm run hooked", { kind: "denied-by-permission-request-hook" });
    await stage.settle();
    const lines = stage.terminal.lines().filter((line) => / for explore-2: |hooked/.test(line));
    expect(lines).toEqual([
      "✓ approved (once) for explore-2: npm test",
      "✗ denied (user) for explore-2: rm -r dist: leave it",
    ]);
    await stage.close();
  });

  it("the terminal shows a memory proposal with all its fields, and a vote with its direction", async () => {
    await using folder = await tempFolder();
    const make = eventMaker();
    const stage = await appWithEvents({ columns: 100, rows: 60, home: folder.path });
    const proposal = {
      ...{ kind: "memory", action: "store", fact: "Tests run with vitest.", subject: "testing" },
      ...{ citations: "package.json:12", reason: "It saves a search." },
    };
    stage.emit(make("permission.requested", { requestId: "m1", permissionRequest: proposal }));
    await stage.settle();
    const shown = stage.terminal.screen().join("\n");
    for (const text of [
      "▌ Memory proposal",
      "Tests run with vitest.",
      "testing",
      "package.json:12",
      "It saves a search.",
    ])
      expect(shown).toContain(text);
    stage.send("\u0001");
    stage.send("y");
    await stage.settle();
    expect(stage.requests.at(-1)).toEqual({
      method: "session.permissions.handlePendingPermissionRequest",
      params: { requestId: "m1", result: { kind: "approve-once" } },
    });
    stage.emit(make("permission.completed", { requestId: "m1", result: { kind: "approved" } }));
    const vote = { kind: "memory", action: "vote", direction: "downvote", fact: "Old fact.", reason: "It changed." };
    stage.emit(make("permission.requested", { requestId: "m2", permissionRequest: vote }));
    await stage.settle();
    const second = stage.terminal.screen().join("\n");
    expect(second).toMatch(/downvote|against/i);
    for (const text of ["Old fact.", "It changed."]) expect(second).toContain(text);
    await stage.close();
  });

  it("drawing a key takes as many bytes after 100,000 lines of history as at the beginning", async () => {
    await using folder = await tempFolder();
    const make = eventMaker();
    const stage = await appWithEvents({ columns: 100, rows: 30, home: folder.path });
    const bytesOfKey = async (): Promise<number> => {
      const before = stage.app.screen.written.bytes;
      stage.send("k");
      await stage.settle();
      return stage.app.screen.written.bytes - before;
    };
    stage.send("k");
    await stage.settle();
    const early = await bytesOfKey();
    for (let index = 0; index < 1_000; index++) {
      const content = Array.from({ length: 100 }, (_, line) => `line ${line}`).join("\n");
      stage.emit(make("assistant.message", { messageId: `m${index}`, content, toolRequests: [] }));
    }
    await stage.settle();
    expect(Math.abs((await bytesOfKey()) - early)).toBeLessThanOrEqual(2);
    await stage.close();
  });
});
