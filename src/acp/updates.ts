import { pathToFileURL } from "node:url";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { deferred } from "../lib/deferred.ts";
import type { EventData, EventOf, SessionEvent } from "../protocol/event.ts";
import type { Abilities } from "./abilities.ts";
import { EditorAgents, type Stage } from "./agents.ts";
import { textBlock } from "./content.ts";
import { EditorSessionFacts } from "./session-facts.ts";
import { planOfList } from "./todo-plan.ts";
import {
  type CallContext,
  endedCall,
  openCall,
  printedCall,
  progressedCall,
  type RunningCall,
  startedCall,
} from "./tool-call.ts";
import type { Update } from "./update.ts";

const START_MS = 10_000;

/** The call that a question comes from, and the session that shows it. */
export interface CallReference {
  readonly toolCallId: string;
  readonly sessionId: string;
}

/** `replay`: an event of a replayed log. */
type How = "live" | "replay";

/**
 * Converts the events of a session to updates for an editor. It stores state that the protocol wants repeated, or never
 * sent twice. Pass every event once, in order.
 */
export class Updates {
  readonly agents: EditorAgents;
  readonly facts: EditorSessionFacts;
  readonly #sessionId: string;
  readonly #terminalOutput: boolean;
  /** Running calls, by their ids for the editor. */
  readonly #calls = new Map<
    string,
    { readonly call: RunningCall; readonly ownId: string; readonly sessionId: string }
  >();
  /** Called after each start of a call. */
  readonly #onStart = new Set<() => void>();
  /** Messages and thoughts that have arrived in parts. */
  readonly #streamed = new Set<string>();

  constructor(parts: { sessionId: string; cwd: string; abilities: Abilities }) {
    const { sessionId, cwd, abilities } = parts;
    this.#sessionId = sessionId;
    this.#terminalOutput = abilities.terminalOutput;
    this.agents = new EditorAgents({ sessionId, cwd, haveSessions: abilities.subagents });
    this.facts = new EditorSessionFacts(abilities);
  }

  /**
   * Resolves with the latest running call of a tool, for questions that do not name their call. A question may arrive
   * before the start event of its call; the wait for that event is bounded.
   */
  async openCall(
    toolName: string,
    fits: (input: RunningCall["input"]) => boolean = () => true,
  ): Promise<CallReference | undefined> {
    const find = (): CallReference | undefined => {
      const found = [...this.#calls].findLast(([, { call }]) => call.toolName === toolName && fits(call.input));
      return found && { toolCallId: found[0], sessionId: found[1].sessionId };
    };
    const found = find();
    if (found !== undefined) return found;
    const late = deferred<CallReference | undefined>();
    const look = (): void => {
      const call = find();
      if (call !== undefined) late.resolve(call);
    };
    const timer = setTimeout(() => late.resolve(undefined), START_MS);
    this.#onStart.add(look);
    return late.promise.finally(() => {
      clearTimeout(timer);
      this.#onStart.delete(look);
    });
  }

  /** Returns the running call that has this id in the session's events. */
  callOf(ownId: string): CallReference | undefined {
    const found = [...this.#calls].findLast(([id, call]) => call.ownId === ownId || id === ownId);
    return found && { toolCallId: found[0], sessionId: found[1].sessionId };
  }

  of(event: SessionEvent, how: How): readonly Update[] {
    const about = this.agents.apply(event);
    const stage = this.agents.stageOf(event.agentId);
    const facts = this.facts.of(event, how === "live");
    return [
      ...about,
      ...(stage ? this.#ofCall(event, stage) : []),
      // Text of an agent without its own session is not part of the answer.
      ...(stage && !stage.agent ? addressed(stage.sessionId, this.#ofWords(event, how)) : []),
      ...addressed(this.#sessionId, facts),
    ];
  }

  #ofWords(event: SessionEvent, how: How): readonly SessionUpdate[] {
    switch (event.type) {
      case "assistant.message_delta": {
        const { messageId, deltaContent } = event.data;
        this.#streamed.add(messageId);
        return [{ sessionUpdate: "agent_message_chunk", content: textBlock(deltaContent), messageId }];
      }
      case "assistant.reasoning_delta": {
        const { reasoningId: messageId, deltaContent } = event.data;
        this.#streamed.add(messageId);
        return [{ sessionUpdate: "agent_thought_chunk", content: textBlock(deltaContent), messageId }];
      }
      case "assistant.reasoning": {
        const { reasoningId: messageId, content } = event.data;
        if (this.#streamed.delete(messageId) || content === "") return [];
        return [{ sessionUpdate: "agent_thought_chunk", content: textBlock(content), messageId }];
      }
      case "assistant.message":
        return this.#whole(event, how);
      case "user.message":
        if (how === "live" || event.data.source !== undefined || event.agentId !== undefined) return [];
        return userBlocks(event.data).map((content) => ({
          sessionUpdate: "user_message_chunk",
          content,
          messageId: event.id,
        }));
      default:
        return [];
    }
  }

  /** Sends a message whole if it was not streamed: it comes from a log, or from a model that does not stream. */
  #whole({ data }: EventOf<"assistant.message">, how: How): readonly SessionUpdate[] {
    const { messageId, content, reasoningText = "" } = data;
    const updates: SessionUpdate[] = [];
    if (how === "replay" && reasoningText !== "") {
      const thought = { content: textBlock(reasoningText), messageId: `${messageId}-thought` };
      updates.push({ sessionUpdate: "agent_thought_chunk", ...thought });
    }
    if (!this.#streamed.delete(messageId) && content !== "")
      updates.push({ sessionUpdate: "agent_message_chunk", content: textBlock(content), messageId });
    return updates;
  }

  #ofCall(event: SessionEvent, stage: Stage): readonly Update[] {
    switch (event.type) {
      case "tool.execution_start":
        return [this.#started(event, stage)];
      case "tool.execution_partial_result":
      case "tool.execution_progress": {
        const id = stage.idOf(event.data.toolCallId);
        const open = this.#calls.get(id);
        if (!open) return [];
        const update =
          event.type === "tool.execution_progress"
            ? progressedCall(id, event.data.progressMessage)
            : printedCall(id, open.call, this.#callContext(stage), event.data.partialOutput);
        return addressed(stage.sessionId, [{ sessionUpdate: "tool_call_update", ...update }]);
      }
      case "tool.execution_complete":
        return this.#ended(event, stage);
      default:
        return [];
    }
  }

  #callContext({ cwd }: Stage): CallContext {
    return { cwd, terminalOutput: this.#terminalOutput };
  }

  #started({ data }: EventOf<"tool.execution_start">, stage: Stage): Update {
    const { sessionId, agent, idOf } = stage;
    const id = idOf(data.toolCallId);
    const call = openCall(data);
    this.#calls.set(id, { call, ownId: data.toolCallId, sessionId });
    for (const look of [...this.#onStart]) look();
    const started = { sessionUpdate: "tool_call" as const, ...startedCall(id, call, this.#callContext(stage)) };
    if (!agent) return { sessionId, update: started };
    const { id: agentId, displayName: name, toolCallId: parentToolCallId } = agent;
    const _meta = { ...started._meta, "troupe/agent": { agentId, name, parentToolCallId } };
    return { sessionId, update: { ...started, title: `${name}: ${started.title}`, _meta } };
  }

  #ended({ data }: EventOf<"tool.execution_complete">, stage: Stage): readonly Update[] {
    const { sessionId, agent, idOf } = stage;
    const id = idOf(data.toolCallId);
    const { call } = this.#calls.get(id) ?? {};
    this.#calls.delete(id);
    const update = {
      sessionUpdate: "tool_call_update" as const,
      ...endedCall(id, call, this.#callContext(stage), data),
    };
    const images = data.result?.binaryResultsForLlm?.filter(({ type }) => type === "image") ?? [];
    const list = call?.toolName === "update_todo" && data.success && !agent ? data.result?.detailedContent : undefined;
    return [
      { sessionId, update, ...(images.length > 0 && { images }) },
      ...(list === undefined ? [] : addressed(sessionId, [{ sessionUpdate: "plan", entries: planOfList(list) }])),
    ];
  }
}

const addressed = (sessionId: string, updates: readonly SessionUpdate[]): readonly Update[] =>
  updates.map((update) => ({ sessionId, update }));

/** Returns a user's message with its attached files. */
function userBlocks({ content, attachments = [] }: EventData<"user.message">): ContentBlock[] {
  const links = attachments.flatMap((attachment): ContentBlock[] => {
    if (attachment.type !== "file" && attachment.type !== "directory") return [];
    return [{ type: "resource_link", uri: pathToFileURL(attachment.path).href, name: attachment.displayName }];
  });
  return [textBlock(content), ...links];
}
