import { clip, plural, sanitiseLine } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Labels } from "../../protocol/labels.ts";
import { busyAgents } from "../../view/agent-rows.ts";
import { SessionView } from "../../view/session-view.ts";
import type { AgentView, View } from "../../view/view.ts";
import { waitedFor } from "../../view/waits.ts";
import { AgentLines, BlockLines, beforeOf, nameOf, toolText } from "./agent-lines.ts";
import { screen, type Terminal } from "./screen.ts";
import { seconds, treeLines } from "./tree-lines.ts";

export interface Progress {
  show(event: SessionEvent): void;
  /** Applies an event of an earlier process, without showing it. */
  recall(event: SessionEvent): void;
  /** Suspends output while a question is asked. Returns a function that resumes it. */
  pause(): () => void;
  /** Removes the live lines permanently, so that later output starts on a clean line. */
  stop(): void;
}

type LogLevel = "none" | "error" | "warning" | "info" | "debug";
const levels: readonly LogLevel[] = ["none", "error", "warning", "info", "debug"];

export interface ProgressOptions {
  readonly stderr: Terminal;
  /** Whether live lines can be drawn. */
  readonly live: boolean;
  readonly colour: boolean;
  /** Names of roles and states. Default: English. */
  readonly labels?: Labels;
  readonly silent: boolean;
  readonly level: LogLevel;
  /** How long an idle session waits for its agents; 0 = not at all. */
  readonly waitMs: number;
  now(): number;
}

const MAX_ROWS = 12;

/** Shows progress on stderr while agents work: a live tree on a terminal, plain lines elsewhere. */
export function progress(options: ProgressOptions): Progress {
  const { stderr, silent, level, now } = options;
  const live = options.live && !silent;
  const wanted = (needed: LogLevel): boolean => levels.indexOf(level) >= levels.indexOf(needed);
  const started = now();
  const folded = new SessionView();
  const { view } = folded;
  const agentLines = new AgentLines();
  const blockLines = new BlockLines();
  let turnsBefore: number | undefined;
  let doing = "";
  let waitedForText = "";
  let pauses = 0;

  const lines = (): readonly string[] => {
    const awaited = waitedFor(view, view.main).length;
    const turn = view.main.turns - (turnsBefore ?? 0);
    const main = `${awaited > 0 ? `waiting for ${plural(awaited, "agent")}` : doing} · turn ${turn} · ${seconds(now() - started)}`;
    const width = Math.max(20, (stderr.columns ?? 80) - 1);
    const rows = Math.min(MAX_ROWS, Math.max(1, (stderr.rows ?? 24) - 1));
    const { colour, labels } = options;
    return treeLines(main, view, { now: now(), width, rows, colour, ...(labels && { labels }) });
  };
  const drawn = live ? screen({ terminal: stderr, now, lines }) : undefined;
  // Redraws every second while the model works, so that the program does not look frozen.
  const ticking = drawn && setInterval(() => redraw(), 1_000);
  ticking?.unref();
  const held: string[] = [];
  const line = (text: string): void => {
    if (pauses > 0) return void held.push(text);
    drawn?.clear();
    stderr.write(`${sanitiseLine(`troupe: ${text}`)}\n`);
    redraw();
  };
  const redraw = (): void => {
    if (doing !== "" && pauses === 0) drawn?.change();
  };
  const collect = (): void => {
    if (doing !== "" && pauses === 0) drawn?.collect();
  };
  const draw = (text: string): void => {
    const isNew = text !== doing;
    doing = text;
    if (isNew) redraw();
    else collect();
  };
  const waiting = (): void => {
    const busy = busyAgents(view);
    if (busy.length === 0 || options.waitMs === 0) return;
    draw(`waiting for ${plural(busy.length, "agent")}`);
    const names = clip(busy.map(nameOf).join(", "), 200);
    if (!live && names !== waitedForText) line(`waiting for ${names}, at most ${seconds(options.waitMs)}`);
    waitedForText = names;
  };
  const showMain = (toolBefore: AgentView["lastTool"]) => {
    const { lastTool } = view.main;
    if (!live && lastTool && lastTool !== toolBefore) return line(toolText(lastTool));
    if (view.session.isMainIdle) return waiting();
    const text = doingOf(view);
    if (text !== "") draw(text);
  };
  const showBlocks = (agent: AgentView | undefined): void => {
    for (const block of folded.drain(agent?.id)) {
      const told = blockLines.lineOf(block);
      if (told && wanted(told.level)) line(told.text);
    }
  };
  /** Reports a wait for a model that has just begun. */
  const showWait = (agent: AgentView, before: AgentView["modelWait"]): void => {
    const { modelWait: wait } = agent;
    if (!wait || wait === before || wait.attempt === undefined || !wanted("warning")) return;
    const who = agent.kind === "main" ? "" : `${agent.id}: `;
    const delay = ((wait.until ?? now()) - now()) / 1000;
    line(`${who}${wait.reason}; try ${wait.attempt + 1} in ${delay.toFixed(1)} s`);
  };

  return {
    pause() {
      pauses++;
      drawn?.clear();
      return () => {
        pauses--;
        if (pauses === 0) for (const text of held.splice(0)) line(text);
        redraw();
      };
    },
    stop() {
      clearInterval(ticking);
      drawn?.stop();
    },
    recall(event) {
      folded.drain(folded.apply(event, now())?.id);
    },
    show(event) {
      if (turnsBefore === undefined) {
        turnsBefore = view.main.turns;
        folded.markPast();
      }
      const subject = folded.subjectOf(event);
      const before = subject && { ...beforeOf(subject), modelWait: subject.modelWait };
      const agent = folded.apply(event, now());
      if (silent) return;
      const isBeside = agent?.kind === "sidekick";
      if (isBeside && !wanted("debug")) return void folded.drain(agent.id);
      if (agent) showWait(agent, before?.modelWait);
      showBlocks(agent);
      if (agent?.kind !== "main") showBlocks(view.main);
      if (wanted("debug")) line(`${event.type} ${clip(JSON.stringify(event.data), 200)}`);
      if (!agent) return;
      if (agent.kind === "main") return showMain(before?.lastTool);
      if (live) return collect();
      for (const text of agentLines.linesOf(agent, before)) line(text);
    },
  };
}

/** Returns the main agent's current activity; empty if it is unknown. */
function doingOf({ main }: View): string {
  if (main.turns === 0) return "";
  const running = [...main.tools.values()].at(-1);
  if (running) return toolText(running);
  const { streaming } = main;
  const isWriting = streaming && (streaming.tail || streaming.blocks.length > 0 || streaming.drainedParts > 0);
  return isWriting ? "writing" : "thinking";
}
