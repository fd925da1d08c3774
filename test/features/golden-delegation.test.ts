import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { submit } from "../../src/runtime/submit.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { beginning, golden, of, onStage, starts, turn } from "./stage.ts";

const asked = ["troupe.permission"];

describe("golden: an agent in the background", () => {
  it("ORC-48 ORC-49 golden: a background agent starts and ends once: idle, a message, idle again, stopped", async () => {
    const steps = [
      starts("a", "explore", { mode: "background" }),
      says("started"),
      calls(["write_agent", { agent_id: "a", message: "and how tall?" }]),
      says("asked"),
      calls(["stop_agent", { agent_id: "a" }]),
      says("thank you"),
      of("a", says("a lighthouse"), says("twelve metres")),
    ];
    await onStage(steps, {}, async ({ session }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "thank you" });
      // ORC-48: one start and one end, however many messages.
      const life = [
        ...["subagent.selected", "subagent.started", "user.message", ...turn(), "user.message", ...turn()],
        ...["subagent.completed", "subagent.deselected"],
      ];
      const calling = [...turn([[]]), ...turn()];
      expect(golden(session.events)).toEqual({
        agents: {
          root: [
            ...beginning,
            ...turn([asked]),
            ...turn(),
            "system.notification",
            ...calling,
            "system.notification",
            ...calling,
          ],
          a: life,
        },
        tasks: {
          a: [
            ...["created", "state running", "state idle", "notice_delivered notice"],
            ...[
              "message",
              "state queued",
              "state running",
              "message_delivered",
              "state idle",
              "notice_delivered notice",
            ],
            ...["state cancelled", "notice_delivered read"],
          ],
        },
      });
    });
  });
});

describe("golden: an agent that must fit a schema", () => {
  it("golden: an agent whose answer does not fit its schema reads the reason once, and answers again", async () => {
    const schema = { type: "object", properties: { metres: { type: "number" } }, required: ["metres"] };
    const steps = [
      starts("a", "explore", { output_schema: schema }),
      says("twelve"),
      of("a", says("quite tall"), says('{"metres": 12}')),
    ];
    await onStage(steps, {}, async ({ session }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "twelve" });
      expect(golden(session.events)).toEqual({
        agents: {
          root: [...beginning, ...turn([asked]), ...turn()],
          a: [
            ...["subagent.selected", "subagent.started", "user.message", ...turn(), "user.message", ...turn()],
            ...["subagent.completed", "subagent.deselected"],
          ],
        },
        tasks: { a: ["created", "state running", "state completed", "notice_delivered read"] },
      });
    });
  });
});

describe("golden: a task of an MCP server", () => {
  it("golden: an MCP task continues after the answer has ended, and a notice reports its end", async () => {
    await using folder = await tempFolder();
    const server = fileURLToPath(new URL("./task-server.mjs", import.meta.url));
    const mcpServers = { garden: { command: process.execPath, args: [server, join(folder.path, "log"), "plain"] } };
    const steps = [calls(["garden-dig", { how: "deep" }]), says("digging"), says("dug")];
    await onStage(steps, { workspace: { mcpServers } }, async ({ session }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "dug" });
      const [first = "", ...rest] = beginning;
      expect(golden(session.events)).toEqual({
        agents: {
          root: [
            ...[first, "troupe.message_queued", ...rest],
            ...[...turn([asked]), ...turn(), "system.notification", ...turn()],
          ],
          dig: ["subagent.started", "subagent.completed"],
        },
        tasks: { dig: ["created", "state running", "state completed", "notice_delivered notice"] },
      });
    });
  });
});

describe("golden: a schedule", () => {
  it("golden: a schedule is set and removed, and both are in the log", async () => {
    await onStage([says("hello")], {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(await submit(session, "/after 10s look again")).toMatchObject({ kind: "said" });
      expect(await submit(session, "/schedules stop 1")).toMatchObject({ kind: "said" });
      expect(golden(session.events)).toEqual({
        agents: { root: [...beginning, ...turn(), "session.schedule_created", "session.schedule_cancelled"] },
        tasks: {},
      });
    });
  });
});
