import { defined } from "../../lib/defined.ts";
import { clip, plural, sanitiseLine } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Labels } from "../../protocol/labels.ts";
import { busyAgents } from "../../view/agent-rows.ts";
import { SessionView } from "../../view/session-view.ts";
import type { AgentView, View } from "../../view/view.ts";
import { waitedFor } from "../../view/waits.ts";
import { AgentLines, BlockLines, nameOf, shownFieldsOf, toolText } from "./agent-lines.ts";
import { type LiveLines, screen, type Terminal } from "./screen.ts";
import { seconds, treeLines } from "./tree-lines.ts";

export interface ProgressOutput {
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
export const progress = (options: ProgressOptions): ProgressOutput => new ProgressDisplay(options);

class ProgressDisplay implements ProgressOutput {
  readonly #options: ProgressOptions;
  readonly #live: boolean;
  readonly #started: number;
  readonly #folded = new SessionView();
  readonly #agentLines = new AgentLines();
  readonly #blockLines = new BlockLines();
  readonly #screen: LiveLines | undefined;
  readonly #ticking: NodeJS.Timeout | undefined;
  /** Lines that arrived during a pause. */
  readonly #held: string[] = [];
  #turnsBefore: number | undefined;
  #doing = "";
  #waitedFor = "";
  #pauses = 0;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#live = options.live && !options.silent;
    this.#started = options.now();
    if (!this.#live) return;
    this.#screen = screen({ terminal: options.stderr, now: options.now, lines: () => this.#lines() });
    // Redraws every second while the model works, so that the program does not look frozen.
    this.#ticking = setInterval(() => this.#redraw(), 1_000);
    this.#ticking.unref();
  }

  pause(): () => void {
    this.#pauses++;
    this.#screen?.clear();
    return () => {
      this.#pauses--;
      if (this.#pauses === 0) for (const lines of this.#held.splice(0)) this.#write(lines);
      this.#redraw();
    };
  }

  stop(): void {
    clearInterval(this.#ticking);
    this.#screen?.stop();
  }

  recall(event: SessionEvent): void {
    this.#folded.drain(this.#folded.apply(event, this.#options.now())?.id);
  }

  show(event: SessionEvent): void {
    const { view } = this.#folded;
    if (this.#turnsBefore === undefined) {
      this.#turnsBefore = view.main.modelCalls;
      this.#folded.markPast();
    }
    const subject = this.#folded.subjectOf(event);
    const before = subject && { ...shownFieldsOf(subject), modelWait: subject.modelWait };
    const agent = this.#folded.apply(event, this.#options.now());
    if (this.#options.silent) return;
    if (agent?.kind === "sidekick" && !this.#wants("debug")) return void this.#folded.drain(agent.id);
    if (agent) this.#showWait(agent, before?.modelWait);
    this.#showBlocks(agent);
    if (agent?.kind !== "main") this.#showBlocks(view.main);
    if (this.#wants("debug")) this.#line(`${event.type} ${clip(JSON.stringify(event.data), 200)}`);
    if (!agent) return;
    if (agent.kind === "main") this.#showMain(before?.lastTool);
    else if (this.#live) this.#collect();
    else for (const text of this.#agentLines.linesOf(agent, before)) this.#line(text);
  }

  #wants(needed: LogLevel): boolean {
    return levels.indexOf(this.#options.level) >= levels.indexOf(needed);
  }

  /** The live lines: the main agent's, then the tree of agents. */
  #lines(): readonly string[] {
    const { stderr, colour, labels, now } = this.#options;
    const { view } = this.#folded;
    const awaited = waitedFor(view, view.main).length;
    const turn = view.main.modelCalls - (this.#turnsBefore ?? 0);
    const doing = awaited > 0 ? `waiting for ${plural(awaited, "agent")}` : this.#doing;
    const main = `${doing} · turn ${turn} · ${seconds(now() - this.#started)}`;
    const width = Math.max(20, (stderr.columns ?? 80) - 1);
    const rows = Math.min(MAX_ROWS, Math.max(1, (stderr.rows ?? 24) - 1));
    return treeLines(main, view, { now: now(), width, rows, colour, ...defined({ labels }) });
  }

  #line(text: string): void {
    this.#write(sanitiseLine(`troupe: ${text}`));
  }

  #write(lines: string): void {
    if (this.#pauses > 0) return void this.#held.push(lines);
    this.#screen?.clear();
    this.#options.stderr.write(`${lines}\n`);
    this.#redraw();
  }

  #redraw(): void {
    if (this.#doing !== "" && this.#pauses === 0) this.#screen?.change();
  }

  #collect(): void {
    if (this.#doing !== "" && this.#pauses === 0) this.#screen?.collect();
  }

  #draw(text: string): void {
    const isNew = text !== this.#doing;
    this.#doing = text;
    if (isNew) this.#redraw();
    else this.#collect();
  }

  #showMain(toolBefore: AgentView["lastTool"]): void {
    const { view } = this.#folded;
    const { lastTool } = view.main;
    const text = doingOf(view);
    if (!this.#live && lastTool && lastTool !== toolBefore) this.#line(toolText(lastTool));
    else if (view.session.isMainIdle) this.#showWaiting();
    else if (text !== "") this.#draw(text);
  }

  /** Names the agents that an idle session waits for. */
  #showWaiting(): void {
    const { waitMs } = this.#options;
    const busy = busyAgents(this.#folded.view);
    if (busy.length === 0 || waitMs === 0) return;
    this.#draw(`waiting for ${plural(busy.length, "agent")}`);
    const names = clip(busy.map(nameOf).join(", "), 200);
    if (!this.#live && names !== this.#waitedFor) this.#line(`waiting for ${names}, at most ${seconds(waitMs)}`);
    this.#waitedFor = names;
  }

  #showBlocks(agent: AgentView | undefined): void {
    for (const block of this.#folded.drain(agent?.id)) {
      const told = this.#blockLines.lineOf(block);
      if (!told || !this.#wants(told.level)) continue;
      const [first = "", ...others] = told.text.trimEnd().split("\n").map(sanitiseLine);
      const more = others.map((line) => `\n${line.startsWith("  ") ? "" : "  "}${line}`);
      this.#write(`troupe: ${first}${more.join("")}`);
    }
  }

  /** Reports a wait for a model that has just begun. */
  #showWait(agent: AgentView, before: AgentView["modelWait"]): void {
    const { modelWait: wait } = agent;
    if (!wait || wait === before || wait.attempt === undefined || !this.#wants("warning")) return;
    const who = agent.kind === "main" ? "" : `${agent.id}: `;
    const now = this.#options.now();
    const delay = ((wait.until ?? now) - now) / 1000;
    this.#line(`${who}${wait.reason}; try ${wait.attempt + 1} in ${delay.toFixed(1)} s`);
  }
}

/** Returns the main agent's current activity; empty if it is unknown. */
function doingOf({ main }: View): string {
  if (main.modelCalls === 0) return "";
  const running = [...main.tools.values()].at(-1);
  if (running) return toolText(running);
  const { streaming } = main;
  const isWriting = streaming && (streaming.tail || streaming.blocks.length > 0 || streaming.drainedParts > 0);
  return isWriting ? "writing" : "thinking";
}
