import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { approveAll, defineTool, type TelemetryConfig } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { calls, says } from "../../src/testing/index.ts";
import { serverStage } from "./stage.ts";

interface Line {
  readonly type: string;
  readonly name: string;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly instrumentationScope: { readonly name: string };
}

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SECRET = ["ghp", "Zk3mQ8vX1cR7tY5uW2oP9sD4fG6hJ0aLbNeT"].join("_");

async function linesOf(path: string): Promise<Line[]> {
  return (await readFile(path, "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const open = (telemetry: TelemetryConfig, traceparent?: string) =>
  serverStage({ telemetry, ...(traceparent && { onGetTraceContext: () => ({ traceparent, tracestate: "v=1" }) }) });

const looking = (seen: unknown[]) =>
  defineTool("look", {
    description: "Looks.",
    parameters: z.object({ where: z.string() }),
    handler: (_, { traceparent, tracestate }) => {
      seen.push({ traceparent, tracestate });
      return `found ${SECRET}`;
    },
  });

describe("telemetry that a program asks for", () => {
  it("requested telemetry goes to a file, in the program's own trace, with content but no secret", async () => {
    const seen: unknown[] = [];
    const stage = await open(
      { filePath: "t.jsonl", exporterType: "file", sourceName: "mine", captureContent: true },
      `00-${TRACE}-00f067aa0ba902b7-01`,
    );
    try {
      const session = await stage.client.createSession({ tools: [looking(seen)], onPermissionRequest: approveAll });
      stage.play(calls(["look", { where: "here" }]), says("all seen"));
      await session.sendAndWait("look around");
      await session.disconnect();
      await stage.client.stop();
      const lines = await linesOf(stage.folder.at("work/t.jsonl"));
      const spans = lines.filter(({ type }) => type === "span");
      expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
      expect(new Set(lines.map(({ instrumentationScope }) => instrumentationScope.name))).toEqual(new Set(["mine"]));
      const of = (operation: string) =>
        spans.filter(({ attributes }) => attributes?.["gen_ai.operation.name"] === operation);
      const [run] = of("invoke_agent");
      expect(run).toMatchObject({ parentSpanId: "00f067aa0ba902b7" });
      expect(run?.attributes?.["gen_ai.conversation.id"]).toBe(session.sessionId);
      const below = [...of("chat"), ...of("execute_tool")];
      expect(below.map(({ parentSpanId }) => parentSpanId)).toEqual([run?.spanId, run?.spanId, run?.spanId]);
      const [call] = of("execute_tool");
      expect(call?.attributes).toMatchObject({
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.arguments": '{"where":"here"}',
        "gen_ai.tool.call.result": expect.stringMatching(/^found \[redacted:/),
      });
      expect(seen).toEqual([{ traceparent: `00-${TRACE}-${call?.spanId}-01`, tracestate: "v=1" }]);
      expect(of("chat")[0]?.attributes?.["gen_ai.input.messages"]).toContain("look around");
      expect(of("chat")[1]?.attributes?.["gen_ai.output.messages"]).toContain("all seen");
      expect(JSON.stringify(lines)).not.toContain(SECRET);
      expect(lines.filter(({ type }) => type === "metric").map(({ name }) => name)).toContain(
        "gen_ai.client.token.usage",
      );
    } finally {
      await stage[Symbol.asyncDispose]();
    }
  });

  it("telemetry is off unless requested, and then a call still belongs to the client's trace", async () => {
    const seen: unknown[] = [];
    const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
    const stage = await serverStage({ onGetTraceContext: () => ({ traceparent }) });
    try {
      const session = await stage.client.createSession({ tools: [looking(seen)], onPermissionRequest: approveAll });
      stage.play(calls(["look", { where: "here" }]), says("seen"));
      await session.sendAndWait("look");
      expect(seen).toEqual([{ traceparent, tracestate: undefined }]);
    } finally {
      await stage[Symbol.asyncDispose]();
    }
  });

  it("telemetry does not block on a receiver that accepts everything and never answers", async () => {
    let asked = 0;
    const silent = createServer(() => void asked++);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const stage = await open({ otlpEndpoint: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` });
    try {
      const session = await stage.client.createSession({ onPermissionRequest: approveAll });
      stage.play(says("quick"));
      expect((await session.sendAndWait("hello"))?.data.content).toBe("quick");
      await session.disconnect();
      const started = performance.now();
      expect(await stage.client.stop()).toEqual([]);
      expect(performance.now() - started).toBeLessThan(8_000);
      expect(asked).toBeGreaterThan(0);
    } finally {
      silent.closeAllConnections();
      silent.close();
      await stage[Symbol.asyncDispose]();
    }
  });

  it("telemetry in an unsupported protocol is refused with a warning, and the session works", async () => {
    const stage = await open({ otlpEndpoint: "http://127.0.0.1:9", otlpProtocol: "grpc" as "http/json" });
    try {
      const session = await stage.client.createSession({ onPermissionRequest: approveAll });
      stage.play(says("fine"));
      expect((await session.sendAndWait("hello"))?.data.content).toBe("fine");
      const warnings = (await session.getEvents()).filter(({ type }) => type === "session.warning");
      expect(warnings.map(({ data }) => Reflect.get(data, "message"))).toEqual([
        expect.stringMatching(/^There is no telemetry: the protocol "grpc" is not supported; set /),
      ]);
    } finally {
      await stage[Symbol.asyncDispose]();
    }
  });
});
