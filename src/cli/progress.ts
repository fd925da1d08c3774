import { clip, plural, sanitiseLine } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";

export interface Progress {
  show(event: SessionEvent): void;
  /** Takes the live line away for good, so that what follows starts on a clean one. */
  stop(): void;
}

type LogLevel = "none" | "error" | "warning" | "info" | "debug";
const levels: readonly LogLevel[] = ["none", "error", "warning", "info", "debug"];

/** What the user sees on stderr while the agent works: one live line on a terminal, plain lines elsewhere. */
export function progress(options: {
  stderr: NodeJS.WriteStream;
  silent: boolean;
  level: LogLevel;
  now: () => number;
}): Progress {
  const { stderr, silent, level, now } = options;
  const live = stderr.isTTY && !silent;
  const wanted = (needed: LogLevel): boolean => levels.indexOf(level) >= levels.indexOf(needed);
  const started = now();
  let shown = false;
  let turn = 0;
  let drawnAt = 0;
  let doing = "";

  const clear = (): void => {
    if (shown) stderr.write("\r\u001b[K");
    shown = false;
  };
  // The seconds go on while the model thinks: a line that stands still looks like a program that does.
  const ticking = live ? setInterval(() => shown && draw(doing), 1_000) : undefined;
  ticking?.unref();
  const line = (text: string): void => {
    clear();
    stderr.write(`${sanitiseLine(text)}\n`);
  };
  const draw = (text: string): void => {
    if (!live) return;
    doing = text;
    const seconds = Math.round((now() - started) / 1000);
    const width = Math.max(20, (stderr.columns ?? 80) - 1);
    stderr.write(`\r\u001b[K${clip(sanitiseLine(`… ${text} · turn ${turn} · ${seconds} s`), width)}`);
    shown = true;
    drawnAt = now();
  };

  return {
    stop() {
      clearInterval(ticking);
      clear();
    },
    show(event) {
      const report = describe(event);
      if (event.type === "assistant.turn_start") turn++;
      if (report && !silent && wanted(report.level)) line(`troupe: ${report.text}`);
      if (wanted("debug") && !silent) line(`troupe: ${event.type} ${clip(JSON.stringify(event.data), 200)}`);
      if (silent) return;
      switch (event.type) {
        case "assistant.turn_start":
          return draw("thinking");
        case "assistant.message_delta":
          if (now() - drawnAt > 100) draw("writing");
          return;
        case "tool.execution_start": {
          const text = clip(`${event.data.toolName} ${argumentText(event.data.arguments)}`.trim(), 100);
          return live ? draw(text) : line(`troupe: ${text}`);
        }
        default:
      }
    },
  };
}

/** One line about something the user may have to know of. */
function describe(event: SessionEvent): { level: LogLevel; text: string } | undefined {
  switch (event.type) {
    case "session.warning":
      return { level: "warning", text: event.data.message };
    case "session.info":
      return { level: "info", text: event.data.message };
    case "troupe.retry": {
      const { attempt, delayMs, reason } = event.data;
      return { level: "warning", text: `${reason}; try ${attempt + 1} in ${(delayMs / 1000).toFixed(1)} s` };
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

/** The one argument that tells most: a path, a pattern, else all of them. */
function argumentText(value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  const fields = Object.entries(value);
  const main = fields.find(([key]) => ["path", "pattern", "command", "url"].includes(key)) ?? fields[0];
  return main ? (typeof main[1] === "string" ? main[1] : JSON.stringify(main[1])) : "";
}
