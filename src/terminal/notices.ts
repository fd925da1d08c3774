/** Word to a user who looks elsewhere: a bell or a notification of the terminal, and a briefing on return. */
import { plural } from "../lib/text.ts";
import type { AttentionItem, View } from "../view/view.ts";
import { safeLine } from "./screen/safe.ts";

export interface NoticePorts {
  write(bytes: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Shorter absences need no briefing. */
const ABSENCE_MS = 60_000;
const NOTIFYING = /iTerm|WezTerm|ghostty|kitty/i;

interface Standing {
  readonly at: number;
  readonly ended: number;
  readonly failed: number;
  readonly costUsd: number;
}

export class Notices {
  readonly #ports: NoticePorts;
  #isFocused = true;
  #wasBusy = false;
  #left: Standing | undefined;

  constructor(ports: NoticePorts) {
    this.#ports = ports;
  }

  update(view: View, fresh: readonly AttentionItem[]): void {
    const isBusy = view.main.status === "running";
    const hasFinished = this.#wasBusy && !isBusy;
    this.#wasBusy = isBusy;
    if (this.#isFocused) return;
    const [asked] = fresh;
    if (asked) this.#notify(`troupe asks: ${asked.title}`);
    else if (hasFinished) this.#notify("troupe: the agent has finished");
  }

  focus(isFocused: boolean, view: View | undefined, commit: (lines: readonly string[]) => void): void {
    const now = Date.now();
    const left = this.#left;
    this.#isFocused = isFocused;
    this.#left = isFocused || !view ? undefined : standing(view, now);
    if (!isFocused || !left || !view || now - left.at < ABSENCE_MS) return;
    const lines = briefing(left, standing(view, now), view);
    if (lines.length > 0) commit(lines);
  }

  /** OSC 9 where the terminal shows it, through tmux too; else the bell. */
  #notify(text: string): void {
    const { TERM_PROGRAM = "", TERM = "", TMUX } = this.#ports.environment;
    const words = safeLine(text)
      .replaceAll(/[;\u0007\u001b]/g, " ")
      .slice(0, 120);
    if (!NOTIFYING.test(`${TERM_PROGRAM} ${TERM}`)) {
      this.#ports.write("\u0007");
      return;
    }
    const osc = `\u001b]9;${words}\u0007`;
    this.#ports.write(TMUX ? `\u001bPtmux;${osc.replaceAll("\u001b", "\u001b\u001b")}\u001b\\\u0007` : osc);
  }
}

function standing(view: View, at: number): Standing {
  const agents = [...view.agents.values()];
  return {
    at,
    ended: agents.filter(({ status }) => status === "completed" || status === "idle").length,
    failed: agents.filter(({ status }) => status === "failed" || status === "cancelled").length,
    costUsd: view.main.subtree.costUsd,
  };
}

/** Returns one line about what changed since then, or nothing. */
function briefing(before: Standing, now: Standing, view: View): string[] {
  const asks = [...view.attention.values()].filter(({ isAnswered }) => !isAnswered).length;
  const parts = [
    now.ended > before.ended && `${plural(now.ended - before.ended, "agent")} done`,
    now.failed > before.failed && `${plural(now.failed - before.failed, "agent")} failed`,
    asks > 0 && `${plural(asks, "request")} for you`,
    now.costUsd > before.costUsd && `$${(now.costUsd - before.costUsd).toFixed(2)}`,
  ].filter((part) => part !== false);
  if (parts.length === 0) return [];
  const time = new Date(before.at).toTimeString().slice(0, 5);
  return [`since ${time}: ${parts.join(", ")}`];
}
