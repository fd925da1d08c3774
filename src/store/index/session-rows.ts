/** Folds a session's events into rows of the session index. Each event costs the same, however long the session is. */
import { sectionsOf } from "../../lib/summary-sections.ts";
import { clip } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { isAsked } from "../../protocol/message.ts";
import { type Reference, referencesIn } from "./session-references.ts";

/** A user message and the reply to it. */
export interface TurnRow {
  /** The number of the user message in the session, from 1. */
  readonly turn: number;
  prompt: string;
  reply: string;
  readonly timestamp: string;
}

export interface CheckpointRow {
  readonly number: number;
  readonly title: string;
  readonly overview: string;
  readonly history: string;
  readonly workDone: string;
  readonly technicalDetails: string;
  readonly importantFiles: string;
  readonly nextSteps: string;
  readonly timestamp: string;
}

export interface FileRow {
  readonly path: string;
  readonly toolName: string;
  readonly turn: number;
  readonly timestamp: string;
}

export interface ReferenceRow extends Reference {
  readonly turn: number;
  readonly timestamp: string;
}

/** The rows since the last `take`. A turn that has grown is included again, complete. */
export interface NewRows {
  readonly turns: readonly TurnRow[];
  readonly checkpoints: readonly CheckpointRow[];
  readonly files: readonly FileRow[];
  readonly references: readonly ReferenceRow[];
}

const MAX_CHARACTERS = 20_000;
const MAX_FILES = 2_000;
const MAX_REFERENCES = 500;
/** Sources of messages that start an answer. Other messages in the user role do not. */
const isStart = (source: unknown): boolean => isAsked(source) || source === "schedule";

/** Folds events into rows. Log events are not validated, so any field may have any type. */
export class IndexRows {
  readonly #calls = new Map<string, { toolName: string; server: string; given: unknown }>();
  readonly #files = new Set<string>();
  readonly #references = new Set<string>();
  #turn: TurnRow | undefined;
  #turns = new Set<TurnRow>();
  #new: { checkpoints: CheckpointRow[]; files: FileRow[]; references: ReferenceRow[] } = nothing();

  apply(event: SessionEvent): void {
    switch (event.type) {
      case "user.message":
        if (event.agentId === undefined && isStart(event.data.source)) this.#begin(event);
        break;
      case "assistant.message":
        if (event.agentId === undefined) this.#answer(event.data.content);
        break;
      case "session.compaction_complete":
        if (event.data.success) this.#new.checkpoints.push(...checkpointOf(event));
        break;
      case "tool.execution_start": {
        const { toolCallId, toolName, mcpServerName, arguments: given } = event.data;
        this.#calls.set(toolCallId, { toolName, server: mcpServerName ?? "", given });
        break;
      }
      case "tool.execution_complete":
        this.#end(event);
        break;
      default:
    }
  }

  /** Returns the new rows. Each row is returned once, except a turn that has grown. */
  take(): NewRows {
    const taken = { ...this.#new, turns: [...this.#turns] };
    this.#new = nothing();
    this.#turns = new Set();
    return taken;
  }

  #begin({ data, timestamp }: Extract<SessionEvent, { type: "user.message" }>): void {
    this.#turn = { turn: (this.#turn?.turn ?? 0) + 1, prompt: joinTexts("", data.content), reply: "", timestamp };
    this.#turns.add(this.#turn);
  }

  #answer(words: unknown): void {
    if (!this.#turn || typeof words !== "string" || words === "") return;
    this.#turn.reply = joinTexts(this.#turn.reply, words);
    this.#turns.add(this.#turn);
  }

  #end({ data, timestamp }: Extract<SessionEvent, { type: "tool.execution_complete" }>): void {
    const call = this.#calls.get(data.toolCallId);
    this.#calls.delete(data.toolCallId);
    if (!call || !data.success) return;
    const content = data.result?.content;
    const output = typeof content === "string" ? content : "";
    const at = { turn: this.#turn?.turn ?? 0, timestamp };
    for (const path of changedFiles(call, output)) {
      const key = `${call.toolName} ${path}`;
      if (this.#files.has(key) || this.#files.size >= MAX_FILES) continue;
      this.#files.add(key);
      this.#new.files.push({ path, toolName: call.toolName, ...at });
    }
    for (const reference of referencesIn({ ...call, output })) {
      const key = `${reference.type} ${reference.value}`;
      if (this.#references.has(key) || this.#references.size >= MAX_REFERENCES) continue;
      this.#references.add(key);
      this.#new.references.push({ ...reference, ...at });
    }
  }
}

const nothing = () => ({ checkpoints: [], files: [], references: [] });

function joinTexts(before: string, more: unknown): string {
  if (typeof more !== "string") return before;
  return clip(before === "" ? more : `${before}\n${more}`, MAX_CHARACTERS);
}

function checkpointOf({
  data,
  timestamp,
}: Extract<SessionEvent, { type: "session.compaction_complete" }>): CheckpointRow[] {
  const { checkpointNumber: number, summaryContent } = data;
  if (typeof number !== "number" || typeof summaryContent !== "string") return [];
  const found = sectionsOf(summaryContent);
  return [
    {
      number,
      title: clip(found.checkpoint_title ?? "", 200),
      overview: joinTexts("", found.overview ?? (Object.keys(found).length === 0 ? summaryContent : "")),
      history: joinTexts("", found.history ?? ""),
      workDone: joinTexts("", found.work_done ?? ""),
      technicalDetails: joinTexts("", found.technical_details ?? ""),
      importantFiles: joinTexts("", found.important_files ?? ""),
      nextSteps: joinTexts("", found.next_steps ?? ""),
      timestamp,
    },
  ];
}

const PATCHED = /^(?:created|updated|deleted|moved .+ to) (.+)$/gm;

function changedFiles({ toolName, given }: { toolName: string; given: unknown }, output: string): string[] {
  if (toolName === "apply_patch") return [...output.matchAll(PATCHED)].map(([, path = ""]) => path.trim());
  if (toolName !== "edit" && toolName !== "create") return [];
  const path = (given as { path?: unknown } | null | undefined)?.path;
  return typeof path === "string" ? [path] : [];
}
