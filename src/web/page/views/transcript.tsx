/** The transcript of one agent, with what it is doing at the moment, open requests, and the field for messages. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { SessionEvent } from "../../../protocol/event.ts";
import type { Block } from "../../../view/blocks.ts";
import { transcriptOf } from "../../../view/replay.ts";
import type { AgentView, View } from "../../../view/view.ts";
import { blockedBy, openAttention, waitChain, waitText } from "../../../view/waits.ts";
import { count } from "../format.ts";
import { AttentionCard } from "../parts/attention-card.tsx";
import { BlockView, StreamingView, ToolView } from "../parts/block.tsx";
import { Composer } from "../parts/composer.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";
import { call } from "../server.ts";
import type { PageSession } from "../session-model.ts";
import { attempt, isExported, tell } from "../state.ts";

export interface TranscriptProps {
  readonly model: PageSession;
  readonly view: View;
  readonly agent: AgentView;
  readonly isLive: boolean;
  onAgent(id: string): void;
}

export function Transcript({ model, view, agent, isLive, onAgent }: TranscriptProps): JSX.Element {
  // The view changes in place: a component that reads it follows the revision.
  model.subscribe();
  const isMain = agent.kind === "main";
  const [whole, setWhole] = useState<readonly Block[] | undefined>();
  const eventOf = useEvents(model);
  const blocks = whole && isLive ? [...whole, ...newSince(agent.blocks, whole)] : agent.blocks;
  return (
    <div class="transcript">
      {agent.droppedBlocks > 0 && !whole && (
        <p class="hint">
          {count(agent.droppedBlocks)} earlier blocks are not in memory.{" "}
          <button
            type="button"
            class="link"
            onClick={() => setWhole([...transcriptOf(model.events, isMain ? undefined : agent.id)])}
          >
            Show all
          </button>
        </p>
      )}
      <VirtualList
        label={`Transcript of ${isMain ? "the main agent" : agent.id}`}
        class="blocks"
        followsEnd={true}
        items={blocks}
        guess={64}
        keyOf={({ id }) => id}
        render={(block) => <BlockView block={block} eventOf={eventOf} onAgent={onAgent} />}
        footer={<Now view={view} agent={agent} model={model} isLive={isLive} />}
      />
      {isLive && !isExported.value && canWrite(model, agent) && <Message model={model} agent={agent} />}
    </div>
  );
}

function newSince(blocks: readonly Block[], whole: readonly Block[]): readonly Block[] {
  const last = whole.at(-1)?.id;
  const at = blocks.findIndex(({ id }) => id === last);
  return at === -1 ? [] : blocks.slice(at + 1);
}

/** Looks events up by their ids. The table grows with the log. */
function useEvents(model: PageSession): (id: string) => SessionEvent | undefined {
  return useMemo(() => {
    const known = new Map<string, SessionEvent>();
    let read = 0;
    return (id: string) => {
      for (; read < model.length; read++) {
        const event = model.events[read];
        if (event) known.set(event.id, event);
      }
      return known.get(id);
    };
  }, [model]);
}

function Now({ view, agent, model, isLive }: Omit<TranscriptProps, "onAgent">): JSX.Element {
  const revision = model.revision.value;
  const chain = waitChain(view, agent.kind === "main" ? undefined : agent.id);
  const asked =
    isLive && !isExported.value ? openAttention(view).filter((item) => (item.agentId ?? "") === agent.id) : [];
  const queue = view.queue.filter(({ agentId }) => (agentId ?? "") === agent.id);
  return (
    <div class="now" aria-live="polite">
      {agent.streaming && (
        <StreamingView
          parts={agent.streaming.blocks}
          tail={agent.streaming.tail}
          reasoning={agent.streaming.reasoning}
          revision={revision}
        />
      )}
      {[...agent.tools.values()].map((card) => (
        <div key={card.toolCallId} class="line tool">
          <span class="who" />
          <div class="what">
            <ToolView card={card} event={undefined} revision={revision} />
          </div>
        </div>
      ))}
      {chain.length > 0 && asked.length === 0 && <p class="waits">waits: {waitText(chain)}</p>}
      {asked.map((item) => (
        <AttentionCard
          key={item.id}
          item={item}
          agent={agent.kind === "main" ? "main agent" : agent.id}
          blocks={blockedBy(view, item).map((id) => (id === "" ? "main agent" : id))}
          sessionId={model.id}
        />
      ))}
      {queue.map(({ messageId, text, mode }) => (
        <p key={messageId} class="queued">
          <span class="topic">{mode === "immediate" ? "steering" : "queued"}</span> {text}
        </p>
      ))}
    </div>
  );
}

/** Workers carry messages to the main agent only, and answer them one after the other. */
const canWrite = ({ isInDatabase }: PageSession, { kind }: AgentView): boolean => !isInDatabase || kind === "main";

function Message({ model, agent }: { readonly model: PageSession; readonly agent: AgentView }): JSX.Element {
  model.subscribe();
  const isMain = agent.kind === "main";
  const isBusy = agent.status === "running" || agent.status === "queued";
  const send = async (text: string, how: "queue" | "steer"): Promise<boolean> => {
    const sessionId = model.id;
    if (!isMain) {
      const sent = await attempt(
        call<{ sent: boolean; error?: string }>("session.tasks.sendMessage", {
          sessionId,
          id: agent.id,
          message: text,
        }),
      );
      if (sent && !sent.sent) tell(sent.error ?? "The agent did not accept the message.", true);
      return sent?.sent === true;
    }
    if (text.startsWith("/")) {
      const said = await attempt(call<{ text?: string }>("session.commands.submit", { sessionId, text }));
      if (said?.text) tell(said.text);
      return said !== undefined;
    }
    const mode = how === "steer" ? "immediate" : "enqueue";
    return (await attempt(call("session.send", { sessionId, prompt: text, mode }))) !== undefined;
  };
  return (
    <Composer
      draft={`${model.id} ${agent.id}`}
      label={isMain ? "Message the main agent" : `Message ${agent.id}`}
      isBusy={isBusy}
      canSteer={isMain && !model.isInDatabase}
      onSend={send}
    />
  );
}
