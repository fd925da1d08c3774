import { describe, expect, it } from "vitest";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls, fails, says } from "../../src/model/faux/faux-step.ts";
import { MetricMeter } from "../../src/telemetry/metrics.ts";
import { SessionTrace } from "../../src/telemetry/session-trace.ts";
import type { NewId, Span } from "../../src/telemetry/span.ts";
import { agent } from "../support/agent.ts";
import { agentPool, task } from "../support/agent-pool.ts";
import { echo, type Stage, stage, tool } from "../support/stage.ts";

/** Ids that count: a trace is t1, its spans s2, s3 … */
function counting(): NewId {
  let last = 0;
  return (bytes) => `${bytes === 16 ? "t" : "s"}${++last}`;
}

function traced({ session }: Stage, captureContent = false) {
  const spans: Span[] = [];
  const meter = new MetricMeter(0);
  const emit = (span: Span): void => void spans.push(span);
  const trace = new SessionTrace({ sessionId: session.id, meter, newId: counting(), captureContent, emit });
  session.subscribe((event) => trace.onEvent(event));
  return { spans, meter, trace };
}

/** Each span under the name of what it lies below. */
function tree(spans: readonly Span[]): string[] {
  const names = new Map(spans.map(({ context, name }) => [context.spanId, name]));
  return spans.map(({ name, parentSpanId }) => `${names.get(parentSpanId ?? "") ?? "-"} > ${name}`).sort();
}

describe("spans of a session", () => {
  it("spans belong to the trace that the session was opened in, also for calls of another process", () => {
    const spans: Span[] = [];
    const ports = { sessionId: "s", meter: new MetricMeter(0), newId: counting(), captureContent: false };
    const parent = { traceId: "work", spanId: "submitter", sampled: true };
    const trace = new SessionTrace({ ...ports, emit: (span) => void spans.push(span) }, parent);
    const told = { id: "e", parentId: null, timestamp: new Date(0).toISOString() };
    // The message was sent on another worker: there is only a further turn.
    trace.onEvent({ ...told, type: "assistant.turn_start", data: { turnId: "1" } });
    trace.close(1);
    expect(spans).toMatchObject([{ parentSpanId: "submitter", context: { traceId: "work" } }]);
  });

  it("spans describe one message: the run, its model calls, its tools, their ends and failures", async () => {
    const broken = tool("broken", async () => {
      throw new Error("no");
    });
    const made = await stage([calls(["echo", { text: "a" }], ["broken", {}]), says("done")], {
      tools: [echo, broken],
    });
    const { spans, meter } = traced(made);
    await made.session.sendAndWait({ prompt: "secret plan" });
    await made.session.close();
    expect(tree(spans)).toEqual([
      "- > invoke_agent troupe",
      "invoke_agent troupe > chat faux-1",
      "invoke_agent troupe > chat faux-1",
      "invoke_agent troupe > execute_tool broken",
      "invoke_agent troupe > execute_tool echo",
    ]);
    expect(new Set(spans.map(({ context }) => context.traceId)).size).toBe(1);
    expect(spans.map(({ kind, name }) => [name.split(" ")[0], kind])).toEqual(
      expect.arrayContaining([
        ["chat", "client"],
        ["execute_tool", "internal"],
        ["invoke_agent", "internal"],
      ]),
    );
    expect(spans.filter(({ error }) => error !== undefined).map(({ name }) => name)).toEqual(["execute_tool broken"]);
    const run = spans.find(({ name }) => name === "invoke_agent troupe");
    expect(run?.attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": made.session.id,
      "gen_ai.agent.name": "troupe",
      "gen_ai.response.finish_reasons": ["stop"],
      "github.copilot.turn_count": 2,
      "troupe.usage.cost_usd": { double: 0 },
    });
    for (const span of spans) expect(span.end).toBeGreaterThanOrEqual(span.start);
    // Nothing anyone said is told unless it is asked for.
    expect(JSON.stringify(spans)).not.toMatch(/secret plan|done|"a"/);
    expect(meter.take(1)?.map(({ instrument, points }) => [instrument.name, points.length])).toEqual([
      ["gen_ai.client.operation.duration", 1],
      ["gen_ai.client.token.usage", 2],
      ["github.copilot.tool.call.count", 2],
      ["github.copilot.tool.call.duration", 2],
      ["gen_ai.client.operation.time_to_first_chunk", 1],
      ["github.copilot.agent.turn.count", 1],
      ["gen_ai.workflow.duration", 1],
    ]);
    expect(meter.take(2)).toBeUndefined();
  });

  it("spans of an agent's run are below the call that started it, three levels down and in the background", async () => {
    const made = await agentPool(
      [
        task("one", "explorer"),
        task("later", "writer", { mode: "background" }),
        says("waiting"),
        says("all done"),
        forAgent("explorer", task("two", "explorer"), calls(["echo", { text: "x" }]), says("deep"), says("up")),
        forAgent("writer", says("written")),
      ],
      { agents: [agent("explorer"), agent("writer")] },
    );
    const { spans } = traced(made);
    await made.session.sendAndWait({ prompt: "go" });
    await made.session.close();
    expect(new Set(spans.map(({ context }) => context.traceId)).size).toBe(1);
    const ids = new Map(spans.map((span) => [span.context.spanId, span]));
    const path = (span: Span): string => {
      const parent = ids.get(span.parentSpanId ?? "");
      return `${parent ? `${path(parent)} > ` : ""}${span.name}`;
    };
    const runs = spans.filter(({ name }) => name.startsWith("invoke_agent"));
    expect(runs.map(path).sort()).toEqual([
      "invoke_agent troupe",
      "invoke_agent troupe > execute_tool task > invoke_agent explorer",
      "invoke_agent troupe > execute_tool task > invoke_agent explorer > execute_tool task > invoke_agent explorer",
      "invoke_agent troupe > execute_tool task > invoke_agent writer",
      // What the main agent does with what it is told later goes on from there.
      "invoke_agent troupe > invoke_agent troupe",
    ]);
    const deep = spans.find(({ name }) => name === "execute_tool echo");
    expect(deep && path(deep)).toMatch(/task > invoke_agent explorer > execute_tool task > invoke_agent explorer >/);
    for (const span of spans) if (span.parentSpanId) expect(ids.has(span.parentSpanId)).toBe(true);
  });

  it("spans belong to the trace that a client gives with a message, and pass it on with calls", async () => {
    const made = await stage([calls(["echo", { text: "a" }, "call-1"]), says("one"), says("two")]);
    const { spans, trace } = traced(made);
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const rules = { trace: { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: "a=1" } };
    let given: unknown;
    made.session.subscribe((event) => {
      if (event.type === "user.message") given ??= trace.ofCall("call-1", undefined);
    });
    trace.expect("message-1", rules.trace);
    await made.session.sendAndWait({ prompt: "go", answering: rules });
    await made.session.sendAndWait({ prompt: "again", answering: {} });
    await made.session.close();
    const [call] = spans.filter(({ name }) => name === "execute_tool echo");
    expect(given).toEqual({ traceparent: `00-${traceId}-${call?.context.spanId}-01`, tracestate: "a=1" });
    const runs = spans.filter(({ name }) => name.startsWith("invoke_agent"));
    expect(runs.map(({ context, parentSpanId }) => [context.traceId === traceId, parentSpanId])).toEqual([
      [true, "b7ad6b7169203331"],
      [false, undefined],
    ]);
  });

  it("spans report failures on the way, and content where that is requested", async () => {
    const made = await stage([fails(500), calls(["echo", { text: "a" }, "call-1"]), says("better")]);
    const { spans } = traced(made, true);
    await made.session.sendAndWait({ prompt: "plan" });
    await made.session.sendAndWait({ prompt: "more" });
    await made.session.close();
    const chats = spans.filter(({ name }) => name.startsWith("chat"));
    expect(chats.map(({ error, events }) => [error, events.map(({ name }) => name)])).toEqual([
      ["server", ["troupe.call_failure"]],
      [undefined, []],
      [undefined, []],
    ]);
    const runs = spans.filter(({ name }) => name.startsWith("invoke_agent"));
    expect(
      runs.map(({ error, attributes }) => [error, attributes["gen_ai.usage.output_tokens"] !== undefined]),
    ).toEqual([
      ["server", true],
      [undefined, true],
    ]);
    const said = (name: string) => chats.map(({ attributes }) => JSON.parse(String(attributes[name] ?? "[]")));
    const user = (content: string) => ({ role: "user", parts: [{ type: "text", content }] });
    const result = { type: "tool_call_response", id: "call-1", response: "a" };
    expect(said("gen_ai.input.messages")).toEqual([
      [user("plan")],
      [user("more")],
      [{ role: "tool", parts: [result] }],
    ]);
    const call = { type: "tool_call", id: "call-1", name: "echo", arguments: { text: "a" } };
    expect(said("gen_ai.output.messages")).toEqual([
      [],
      [{ role: "assistant", parts: [call], finish_reason: "tool_call" }],
      [{ role: "assistant", parts: [{ type: "text", content: "better" }], finish_reason: "stop" }],
    ]);
    const [tool] = spans.filter(({ name }) => name.startsWith("execute_tool"));
    expect(tool?.attributes).toMatchObject({
      "gen_ai.tool.call.arguments": '{"text":"a"}',
      "gen_ai.tool.call.result": "a",
    });
  });

  it("spans end with their session, whatever was open", async () => {
    const hanging = tool("hang", (signal) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
    const made = await stage([calls(["hang", {}])], { tools: [hanging] });
    const { spans } = traced(made);
    await made.session.send({ prompt: "go" });
    await new Promise<void>((resolve) =>
      made.session.record.follow(({ type }) => type === "tool.execution_start" && resolve()),
    );
    await made.session.close();
    const run = spans.find(({ name }) => name.startsWith("invoke_agent"));
    expect(run?.events.map(({ name }) => name)).toContain("github.copilot.abort");
    expect(tree(spans)).toContain("invoke_agent troupe > execute_tool hang");
  });
});
