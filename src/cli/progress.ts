import { clip, plural, sanitiseLine } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { Labels } from "../protocol/labels.ts";
import { isSidekickId } from "../session/sidekicks.ts";
import { agentLine, CallEnds, nameOf } from "./agent-lines.ts";
import { screen, type Terminal } from "./screen.ts";
import { Tree, toolText } from "./tree.ts";
import { seconds, treeLines } from "./tree-lines.ts";

export interface Progress {
  show(event: SessionEvent): void;
  /** Takes in what an earlier process did, without showing it. */
  recall(event: SessionEvent): void;
  /** Writes nothing until the returned function is called: someone is asked a question. */
  pause(): () => void;
  /** Takes the live lines away for good, so that what follows starts on a clean one. */
  stop(): void;
}

type LogLevel = "none" | "error" | "warning" | "info" | "debug";
const levels: readonly LogLevel[] = ["none", "error", "warning", "info", "debug"];

export interface ProgressOptions {
  readonly stderr: Terminal;
  /** Live lines can be drawn there. */
  readonly live: boolean;
  readonly colour: boolean;
  /** Names of roles and states; English unless given. */
  readonly labels?: Labels;
  readonly silent: boolean;
  readonly level: LogLevel;
  /** How long a session that is done waits for its agents; 0 = not at all. */
  readonly waitMs: number;
  now(): number;
}

const MAX_ROWS = 12;

/** What the user sees on stderr while agents work: a live tree on a terminal, plain lines elsewhere. */
export function progress(options: ProgressOptions): Progress {
  const { stderr, silent, level, now } = options;
  const live = options.live && !silent;
  const wanted = (needed: LogLevel): boolean => levels.indexOf(level) >= levels.indexOf(needed);
  const started = now();
  const tree = new Tree();
  const ends = new CallEnds();
  let turn = 0;
  let doing = "";
  let waitedFor = "";
  let pauses = 0;

  const lines = (): readonly string[] => {
    const { awaited } = tree;
    const main = `${awaited > 0 ? `waiting for ${plural(awaited, "agent")}` : doing} · turn ${turn} · ${seconds(now() - started)}`;
    const width = Math.max(20, (stderr.columns ?? 80) - 1);
    const rows = Math.min(MAX_ROWS, Math.max(1, (stderr.rows ?? 24) - 1));
    const { colour, labels } = options;
    return treeLines(main, tree, { now: now(), width, rows, colour, ...(labels && { labels }) });
  };
  const drawn = live ? screen({ terminal: stderr, now, lines }) : undefined;
  // The seconds go on while the model thinks: a line that stands still looks like a program that does.
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
    const busy = tree.busy;
    if (busy.length === 0 || options.waitMs === 0) return;
    draw(`waiting for ${plural(busy.length, "agent")}`);
    const names = clip(busy.map(nameOf).join(", "), 200);
    if (!live && names !== waitedFor) line(`waiting for ${names}, at most ${seconds(options.waitMs)}`);
    waitedFor = names;
  };
  const showMain = (event: SessionEvent) => {
    switch (event.type) {
      case "assistant.turn_start":
        turn++;
        return draw("thinking");
      case "assistant.message_delta":
        return draw("writing");
      case "tool.execution_start":
        return live ? draw(toolText(event.data)) : line(toolText(event.data));
      case "assistant.idle":
        return waiting();
      default:
    }
  };
  const showAgent = (event: SessionEvent) => {
    if (live) return collect();
    if (event.type === "tool.execution_start") return line(`${event.agentId}: ${toolText(event.data)}`);
    const text = agentLine(event, tree);
    if (text !== undefined) line(text);
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
    recall: (event) => tree.apply(event, now(), "past"),
    show(event) {
      tree.apply(event, now());
      if (silent || (isBeside(event) && !wanted("debug"))) return;
      const report = describe(event);
      if (report && wanted(report.level)) line(report.text);
      const failure = ends.failureIn(event);
      if (failure !== undefined && wanted("warning")) line(failure);
      if (wanted("debug")) line(`${event.type} ${clip(JSON.stringify(event.data), 200)}`);
      if (event.agentId === undefined && event.type !== "troupe.task_state") showMain(event);
      else showAgent(event);
    },
  };
}

/** What sidekicks do is not what anyone waits for; what they leave is shown by `troupe inbox`. */
const isBeside = ({ agentId }: SessionEvent): boolean => isSidekickId(agentId);

/** One line about something the user may have to know of. */
function describe(event: SessionEvent): { level: LogLevel; text: string } | undefined {
  const who = event.agentId === undefined ? "" : `${event.agentId}: `;
  switch (event.type) {
    case "session.warning":
      return { level: "warning", text: `${who}${event.data.message}` };
    case "session.info":
      return { level: "info", text: `${who}${event.data.message}` };
    case "troupe.retry": {
      const { attempt, delayMs, reason } = event.data;
      return { level: "warning", text: `${who}${reason}; try ${attempt + 1} in ${(delayMs / 1000).toFixed(1)} s` };
    }
    case "troupe.log_damage": {
      const lost = event.data.damage.map(({ line, message }) => `line ${line}: ${message}`).join("; ");
      return {
        level: "warning",
        text: `the session's log was damaged (${plural(event.data.damage.length, "place")}): ${lost}`,
      };
    }
    default:
      return undefined;
  }
}
