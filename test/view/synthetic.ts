/** A long session without end: many agents that start, call tools, write, ask and end. Same seed, same events. */
import type { EventData, EventType, SessionEvent } from "../../src/protocol/event.ts";

const AGENTS_AT_ONCE = 30;

export function* syntheticEvents(count: number): Generator<SessionEvent> {
  let made = 0;
  let lastId: string | null = null;
  const say = <T extends EventType>(type: T, data: EventData<T>, agentId?: string, ephemeral = false): SessionEvent => {
    const id = `event-${made++}`;
    const timestamp = new Date(1_700_000_000_000 + made * 10).toISOString();
    const event = { id, timestamp, parentId: lastId, type, data };
    if (!ephemeral) lastId = id;
    return { ...event, ...(agentId !== undefined && { agentId }), ...(ephemeral && { ephemeral }) } as SessionEvent;
  };
  for (let round = 0; made < count; round++) {
    const id = `agent-${round}`;
    const parent = round % 3 === 0 || round === 0 ? undefined : `agent-${round - 1}`;
    yield say("user.message", { content: `Message ${round}` });
    yield say("troupe.task_created", {
      ...{ taskId: id, toolCallId: `task-${round}`, kind: "agent", agentName: "explore", agentDisplayName: "Explore" },
      ...{ description: `look ${round}`, prompt: "p".repeat(3_000), mode: "background", depth: 1 },
      ...{ multiTurn: false, tools: null },
      ...(parent !== undefined && { parentId: parent }),
    });
    yield say("troupe.task_state", { taskId: id, from: "queued", to: "running" });
    for (let turn = 0; turn < 6; turn++) {
      yield say("assistant.turn_start", { turnId: `${turn}` }, id);
      const content = `# Turn ${turn}\n\n${"word ".repeat(100)}\n\n\`\`\`\n${"code\n".repeat(30)}\`\`\`\n`;
      const messageId = `message-${round}-${turn}`;
      for (let at = 0; at < content.length; at += 100) {
        const deltaContent = content.slice(at, at + 100);
        yield say("assistant.message_delta", { messageId, deltaContent }, turn % 2 ? id : undefined, true);
      }
      yield say("assistant.message", { messageId, content, toolRequests: [] }, turn % 2 ? id : undefined);
      const toolCallId = `call-${round}-${turn}`;
      const start = { toolCallId, toolName: "bash", arguments: { command: "c".repeat(500) } };
      yield say("tool.execution_start", start, id);
      for (let piece = 0; piece < 5; piece++) {
        const partialOutput = `output ${piece}\n`.repeat(50);
        yield say("tool.execution_partial_result", { toolCallId, partialOutput }, id, true);
      }
      const requestId = `request-${round}-${turn}`;
      const url = { kind: "url", url: "https://example.com", intention: "read", toolCallId } as const;
      yield say("permission.requested", { requestId, permissionRequest: url }, id);
      yield say("permission.completed", { requestId, result: { kind: "approved" } }, id);
      const result = { content: `${round} result line\n`.repeat(1_000) };
      yield say("tool.execution_complete", { toolCallId, success: true, result }, id);
      yield say("session.warning", { warningType: "x", message: `Warning ${round}` });
    }
    const old = `agent-${round - AGENTS_AT_ONCE}`;
    if (round >= AGENTS_AT_ONCE) {
      const response = "r".repeat(5_000);
      yield say("troupe.task_state", { taskId: old, from: "running", to: "completed", reason: "finished", response });
    }
  }
}
