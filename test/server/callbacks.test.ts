import { existsSync } from "node:fs";
import {
  approveAll,
  type CopilotSession,
  defineTool,
  type PermissionRequest,
  type SessionEvent,
} from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import * as z from "zod";
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

const add = (seen: unknown[] = []) =>
  defineTool("add", {
    description: "Adds two numbers.",
    parameters: z.object({ a: z.number(), b: z.number() }),
    handler: ({ a, b }, invocation) => {
      seen.push(invocation.toolCallId);
      return { sum: a + b };
    },
  });

/** What the model was shown of the results of tools. */
function toolResults(): string[] {
  const messages = stage.model.requests.at(-1)?.request?.messages ?? [];
  return messages.flatMap((message) => (message.role === "tool" ? [message.content] : []));
}

async function eventsOf(session: CopilotSession, type: string): Promise<SessionEvent[]> {
  return (await session.getEvents()).filter((event) => event.type === type);
}

describe("tools of a client", () => {
  it("SDK-29 a client's tools are offered with their schema, run side by side, and answer the model", async () => {
    const seen: unknown[] = [];
    const session = await stage.client.createSession({ tools: [add(seen)], onPermissionRequest: approveAll });
    stage.play(calls(["add", { a: 1, b: 2 }], ["add", { a: 3, b: 4 }]), says("3 and 7"));
    expect((await session.sendAndWait("add"))?.data.content).toBe("3 and 7");
    expect(seen).toHaveLength(2);
    expect(toolResults()).toEqual(['{"sum":3}', '{"sum":7}']);
    const offered = stage.model.requests.at(-1)?.request?.tools.find(({ name }) => name === "add");
    expect(offered).toMatchObject({ description: "Adds two numbers.", parameters: { required: ["a", "b"] } });
    const order = (await session.getEvents()).map(({ type }) => type).filter((type) => /^(tool\.|external)/.test(type));
    expect(order.slice(0, 2)).toEqual(["tool.execution_start", "tool.execution_start"]);
    expect(order.filter((type) => type === "external_tool.requested")).toHaveLength(2);
  });

  it("a client's tools hide their errors from the model, and can fail, replace a built-in and end the answer", async () => {
    const session = await stage.client.createSession({
      tools: [
        { name: "breaks", skipPermission: true, handler: () => Promise.reject(new Error("the code word is x")) },
        {
          name: "refuses",
          skipPermission: true,
          handler: () => ({ textResultForLlm: "not today", resultType: "failure" }),
        },
        { name: "grep", overridesBuiltInTool: true, skipPermission: true, handler: () => "mine" },
        { name: "finish", isTerminal: true, skipPermission: true, handler: () => "done" },
      ],
    });
    stage.play(calls(["breaks", {}], ["refuses", {}], ["grep", {}]), calls(["finish", {}]));
    await session.sendAndWait("go");
    expect(toolResults()).toEqual([expect.stringContaining("Tool execution failed"), "not today", "mine"]);
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).not.toContain("code word");
  });
});

describe("permissions", () => {
  const kinds: string[] = [];
  const decide = (kind: "approve-once" | "reject" | "user-not-available") => (request: PermissionRequest) => {
    kinds.push(request.kind);
    return { kind };
  };

  it("SDK-30 permissions are requested, and the client's decision is applied", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: decide("approve-once") });
    stage.play(
      calls(["view", { path: "a.txt" }]),
      calls(["create", { path: "b.txt", file_text: "b" }], ["bash", { command: "echo hi > c.txt" }]),
      says("done"),
    );
    await session.sendAndWait("write");
    expect(kinds.splice(0).sort()).toEqual(["read", "shell", "write"]);
    expect(existsSync(stage.folder.at("work/b.txt")) && existsSync(stage.folder.at("work/c.txt"))).toBe(true);
    const completed = await eventsOf(session, "permission.completed");
    expect(completed.map(({ data }) => Reflect.get(data, "result"))).toEqual(Array(3).fill({ kind: "approved" }));
  });

  it("SDK-30 a rejected permission ends the answer, but not when no client is connected", async () => {
    const rejected = await stage.client.createSession({ onPermissionRequest: decide("reject") });
    stage.play(calls(["create", { path: "d.txt", file_text: "d" }]));
    await rejected.sendAndWait("write");
    const [end] = await eventsOf(rejected, "tool.execution_complete");
    expect(end?.data).toMatchObject({ success: false, error: { code: "rejected", message: /user rejected/ } });
    const alone = await stage.client.createSession({ onPermissionRequest: decide("user-not-available") });
    stage.play(calls(["create", { path: "d.txt", file_text: "d" }]), says("then not"));
    expect((await alone.sendAndWait("write"))?.data.content).toBe("then not");
    expect(toolResults()).toEqual(["Permission denied and could not request permission from user"]);
    expect(existsSync(stage.folder.at("work/d.txt"))).toBe(false);
  });

  it("a permission is stored for the session when the client chooses that", async () => {
    const asked: string[] = [];
    const session = await stage.client.createSession({
      onPermissionRequest: ({ kind }) => {
        asked.push(kind);
        return { kind: "approve-for-session" };
      },
    });
    stage.play(calls(["view", { path: "a.txt" }]), calls(["view", { path: "a.txt" }]), says("twice"));
    await session.sendAndWait("look twice");
    expect(asked).toEqual(["read"]);
  });
});

describe("hooks", () => {
  it("a client's hooks receive every hook point and may decide", async () => {
    const told: string[] = [];
    const tell = (name: string) => (input: object) => {
      told.push(name);
      const { sessionId, timestamp, workingDirectory } = {
        sessionId: "",
        timestamp: 0,
        workingDirectory: "",
        ...input,
      };
      expect([sessionId, timestamp, workingDirectory]).not.toContain("");
      return undefined;
    };
    let blocked = false;
    const session = await stage.client.createSession({
      tools: [add()],
      onPermissionRequest: approveAll,
      hooks: {
        onSessionStart: () => ({ additionalContext: "It is a holiday." }),
        onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt} carefully` }),
        onUserPromptTransformed: tell("transformed"),
        onPreToolUse: ({ toolName }) => {
          if (toolName === "view") return { permissionDecision: "deny", permissionDecisionReason: "not this one" };
          return toolName === "add" ? { permissionDecision: "allow", modifiedArgs: { a: 40, b: 2 } } : undefined;
        },
        onPostToolUse: () => ({ additionalContext: "That was right." }),
        onPostToolUseFailure: tell("failure"),
        onAgentStop: () => {
          if (blocked) return undefined;
          blocked = true;
          return { decision: "block", reason: "Say it again." };
        },
        onSessionEnd: tell("end"),
      },
    });
    stage.play(
      calls(["add", { a: 1, b: 1 }], ["view", { path: "a.txt" }], ["grep", { pattern: "(" }]),
      says("42"),
      says("42!"),
    );
    expect((await session.sendAndWait("add"))?.data.content).toBe("42!");
    const shown = JSON.stringify(stage.model.requests.at(-1)?.request?.messages);
    for (const words of [
      "It is a holiday.",
      "add carefully",
      '{\\"sum\\":42}',
      "not this one",
      "That was right.",
      "Say it again.",
    ]) {
      expect(shown).toContain(words);
    }
    await session.disconnect();
    expect(told).toEqual(["transformed", "failure", "end"]);
  });
});

describe("questions", () => {
  it("questions of the model and of a plan go to the client, and its answers come back", async () => {
    const session = await stage.client.createSession({
      onPermissionRequest: approveAll,
      onUserInputRequest: ({ question, choices }) => ({ answer: `${choices?.[1]} (${question})`, wasFreeform: false }),
    });
    stage.play(calls(["ask_user", { question: "Which?", choices: ["A", "B"] }]), says("B then"));
    await session.sendAndWait("ask me");
    expect(toolResults()).toEqual([expect.stringContaining("B (Which?)")]);
    const silent = await stage.client.createSession({});
    stage.play(says("-"));
    await silent.sendAndWait("hello");
    expect(stage.model.requests.at(-1)?.request?.tools.map(({ name }) => name)).not.toContain("ask_user");
  });

  it("questions in forms go to a client that can show them", async () => {
    const plain = await stage.client.createSession({});
    expect(plain.capabilities.ui?.elicitation).toBe(false);
    const session = await stage.client.createSession({
      onElicitationRequest: ({ message }) => ({ action: "accept", content: { name: message } }),
    });
    expect(session.capabilities.ui?.elicitation).toBe(true);
    const requestedSchema = { type: "object" as const, properties: { name: { type: "string" as const } } };
    const answer = await session.ui.elicitation({ message: "Who?", requestedSchema });
    expect(answer).toEqual({ action: "accept", content: { name: "Who?" } });
  });

  it("questions about the system prompt are sent before it is used", async () => {
    const session = await stage.client.createSession({
      systemMessage: {
        mode: "customize",
        sections: { tone: { action: (text) => `${text.length > 0 ? "Changed" : "Empty"}: be brief.` } },
      },
    });
    stage.play(says("ok"));
    await session.sendAndWait("hello");
    expect(stage.model.requests.at(-1)?.request?.system).toContain("Changed: be brief.");
  });

  it("commands of a client run in the client", async () => {
    const ran: string[] = [];
    const session = await stage.client.createSession({
      commands: [
        { name: "deploy", description: "Deploys.", handler: ({ args }) => void ran.push(args) },
        { name: "fail", handler: () => Promise.reject(new Error("no network")) },
      ],
    });
    expect(await session.rpc.commands.execute({ commandName: "deploy", args: "staging" })).toEqual({});
    expect(await session.rpc.commands.execute({ commandName: "fail", args: "" })).toEqual({ error: "no network" });
    await expect(session.rpc.commands.execute({ commandName: "none", args: "" })).rejects.toThrow(/Unknown command/);
    expect(ran).toEqual(["staging"]);
  });
});
