/** One block of a transcript. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { SessionEvent } from "../../../protocol/event.ts";
import type { Block, MarkdownPart, OutputText, ToolCard } from "../../../view/blocks.ts";
import { fullDiff, fullText } from "../../../view/full-text.ts";
import { duration } from "../format.ts";
import { Code } from "./code.tsx";
import { Diff } from "./diff.tsx";
import { StateLabel } from "./labels.tsx";
import { Markdown } from "./markdown.tsx";

export interface BlockProps {
  readonly block: Block;
  /** The stored event with this id, for texts of which the block has a part. */
  eventOf(id: string): SessionEvent | undefined;
  onAgent(id: string): void;
}

export function BlockView({ block, eventOf, onAgent }: BlockProps): JSX.Element | null {
  switch (block.kind) {
    case "user":
      return (
        <Line who={block.source === "agent" ? "task" : (block.source ?? "you")} kind="user">
          <Markdown text={block.text} />
          {block.attachments.length > 0 && <p class="hint">attached: {sanitise(block.attachments.join(", "))}</p>}
        </Line>
      );
    case "assistant":
      return (
        <Line who={block.part === 0 ? "agent" : ""} kind="assistant">
          <Part part={block.markdown} />
        </Line>
      );
    case "reasoning":
      return (
        <Line who="" kind="reasoning">
          <details>
            <summary>thinking</summary>
            <p class="plain">{sanitise(block.text)}</p>
          </details>
        </Line>
      );
    case "tool":
      return (
        <Line who="" kind="tool">
          <ToolView card={block.card} event={block.eventId === undefined ? undefined : eventOf(block.eventId)} />
        </Line>
      );
    case "plan":
      return <PlanView block={block} />;
    case "agent":
      return <AgentView block={block} onAgent={onAgent} />;
    default:
      return <Note {...noteOf(block)} />;
  }
}

type BlockOf<K extends Block["kind"]> = Extract<Block, { readonly kind: K }>;

function PlanView({ block }: { readonly block: BlockOf<"plan"> }): JSX.Element {
  return (
    <Line who="plan" kind="plan">
      <ul class="todo">
        {block.items.map(({ title, status }, index) => (
          <li key={index} class={status}>
            <span class="mark">{status === "done" ? "✓" : status === "in_progress" ? "▸" : "·"}</span>
            {sanitise(title)} <span class="hint">{status.replace("_", " ")}</span>
          </li>
        ))}
      </ul>
    </Line>
  );
}

function AgentView({ block, onAgent }: { readonly block: BlockOf<"agent">; onAgent(id: string): void }): JSX.Element {
  return (
    <Line who="" kind="agent">
      <button type="button" class="link" onClick={() => onAgent(block.childId)}>
        {sanitise(block.name)}
      </button>{" "}
      <StateLabel state={block.status} /> <span class="hint">after {duration(block.durationMs)}</span>
      {(block.error ?? block.result) !== "" && (
        <details>
          <summary>result</summary>
          <Markdown text={block.error ?? block.result} />
        </details>
      )}
    </Line>
  );
}

type NoteBlock = Exclude<Block, BlockOf<"user" | "assistant" | "reasoning" | "tool" | "plan" | "agent">>;

/** The blocks that are one line. */
function noteOf(block: NoteBlock): NoteProps {
  switch (block.kind) {
    case "notice":
      return { kind: block.level, title: block.topic, text: block.text, more: block.tip };
    case "error":
      return { kind: "error", title: block.topic, text: block.text, more: block.advice };
    case "approval": {
      const kind = block.decision === "approved" ? "info" : "warning";
      const who = block.askedBy === undefined ? "" : ` for ${block.askedBy}`;
      return {
        kind,
        title: `${block.decision}${block.how === block.decision ? "" : ` (${block.how})`}${who}`,
        text: block.title,
        more: block.feedback,
      };
    }
    case "answer":
      return { kind: "info", title: "question", text: block.question, more: block.answer ?? "no answer" };
    case "compaction": {
      const text = `${block.tokensBefore ?? "?"} → ${block.tokensAfter ?? "?"} tokens`;
      return { kind: "info", title: "conversation compacted", text, more: block.error ?? block.summary };
    }
    case "mode":
      return { kind: "info", title: "mode", text: `${block.from} → ${block.to}`, more: undefined };
    case "model":
      return { kind: "info", title: "model", text: `${block.from ?? "–"} → ${block.to}`, more: block.cause };
    case "completion":
      return { kind: "info", title: "task complete", text: block.summary, more: undefined };
    case "rewind": {
      const title = block.isRestored ? "restored" : "rewound";
      return { kind: "warning", title, text: `${block.eventsRemoved} events`, more: undefined };
    }
  }
}

/** The reply that is being written. */
export function StreamingView({ parts, tail, reasoning }: StreamingProps): JSX.Element {
  return (
    <Line who="agent" kind="assistant streaming">
      {parts.map((block) => (block.kind === "assistant" ? <Part key={block.id} part={block.markdown} /> : null))}
      {tail ? (
        <p class="plain">{sanitise(tail.text)}</p>
      ) : (
        reasoning !== "" && <p class="plain hint">{sanitise(reasoning)}</p>
      )}
    </Line>
  );
}

interface StreamingProps {
  /** The reply changes in place; a new number draws it again. */
  readonly revision: number;
  readonly parts: readonly Block[];
  readonly tail: MarkdownPart | undefined;
  readonly reasoning: string;
}

function Part({ part }: { readonly part: MarkdownPart }): JSX.Element {
  if (part.kind === "code") return <Code text={sanitise(part.text)} language={part.language} />;
  return <Markdown text={part.text} />;
}

function Line({ who, kind, children }: { who: string; kind: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class={`line ${kind}`}>
      <span class="who">{who}</span>
      <div class="what">{children}</div>
    </div>
  );
}

interface NoteProps {
  readonly kind: string;
  readonly title: string;
  readonly text: string;
  readonly more: string | undefined;
}

function Note({ kind, title, text, more }: NoteProps): JSX.Element {
  return (
    <Line who="" kind={`note ${kind}`}>
      <span class="topic">{sanitise(title.replaceAll("_", " "))}</span> {sanitise(text)}
      {more !== undefined && more !== "" && <span class="hint"> {sanitise(more)}</span>}
    </Line>
  );
}

const stateWords: Readonly<Record<ToolCard["state"], string>> = {
  running: "running",
  done: "done",
  failed: "failed",
  denied: "denied",
  rejected: "rejected",
  interrupted: "interrupted",
};

export interface ToolProps {
  readonly card: ToolCard;
  readonly event: SessionEvent | undefined;
  /** A running call changes in place; a new number draws it again. */
  readonly revision?: number;
}

export function ToolView({ card, event }: ToolProps): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const took = card.endedAt === undefined ? "" : duration(card.endedAt - card.startedAt);
  const hasMore = (card.output.hiddenCharacters > 0 || (card.diff?.hiddenCharacters ?? 0) > 0) && event !== undefined;
  const output = isWhole && event ? sanitise(fullText(event)) : outputTextOf(card.output);
  const diff = isWhole && event ? fullDiff(event) : card.diff && outputTextOf(card.diff);
  return (
    <details class={`card tool-${card.state}`} open={card.state === "failed" || card.state === "denied"}>
      <summary>
        <span class={`dot ${card.state}`} aria-hidden="true" />
        <code>{sanitise(card.title)}</code>
        {card.isHidden && <span class="hint">hidden from the model</span>}
        <span class="hint">
          {stateWords[card.state]}
          {card.exitCode !== undefined && card.exitCode !== 0 ? `, exit code ${card.exitCode}` : ""}
          {took === "" ? "" : ` · ${took}`}
        </span>
      </summary>
      {card.waitsFor !== undefined && <p class="hint">waits for {sanitise(card.waitsFor)}</p>}
      {card.progress !== undefined && <p class="hint">{sanitise(card.progress)}</p>}
      {card.error !== undefined && <p class="error">{sanitise(card.error)}</p>}
      {diff ? (
        <Diff diff={diff} label={`Changes of ${card.title}`} />
      ) : (
        output !== "" && <Code text={output} language="" />
      )}
      {hasMore && !isWhole && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          show {card.output.hiddenLines + (card.diff?.hiddenLines ?? 0)} more lines
        </button>
      )}
      <details class="args">
        <summary>arguments</summary>
        <Code text={sanitise(card.arguments)} language="json" />
      </details>
    </details>
  );
}

function outputTextOf({ head, tail, hiddenLines }: OutputText): string {
  return sanitise(tail === "" ? head : `${head}\n… ${hiddenLines} lines …\n${tail}`);
}
