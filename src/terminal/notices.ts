/** Word to a user who looks elsewhere: a bell or a notification of the terminal, and a briefing on return. */
import { plural } from "../lib/text.ts";
import type { AgentView, AttentionItem, View } from "../view/view.ts";
import { openAttention } from "../view/waits.ts";
import { safeLine } from "./screen/safe.ts";

export interface NoticePorts {
  write(bytes: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Shorter absences need no briefing. */
const ABSENCE_MS = 60_000;
const NOTIFYING = /iTerm|WezTerm|ghostty|kitty/i;

interface BriefingState {
  readonly at: number;
  readonly ended: ReadonlySet<string>;
  readonly failed: ReadonlySet<string>;
  readonly isBusy: boolean;
  readonly costUsd: number;
}

export class Notices {
  readonly #ports: NoticePorts;
  #isFocused = true;
  #wasBusy = false;
  #left: BriefingState | undefined;
  /** Agents whose end the user wants to hear of. */
  readonly #watched = new Set<string>();

  constructor(ports: NoticePorts) {
    this.#ports = ports;
  }

  /** Tells the user when the agent has ended, also while the terminal is looked at. False: not any more. */
  watch(agentId: string): boolean {
    if (this.#watched.delete(agentId)) return false;
    this.#watched.add(agentId);
    return true;
  }

  #endOfWatched(view: View): void {
    for (const id of this.#watched) {
      const { status = "completed" } = view.agents.get(id) ?? {};
      if (status === "running" || status === "queued") continue;
      this.#watched.delete(id);
      this.#notify(`troupe: ${id} is ${status === "idle" ? "done" : status}`);
    }
  }

  update(view: View, fresh: readonly AttentionItem[]): void {
    this.#endOfWatched(view);
    const isBusy = view.main.status === "running";
    const hasFinished = this.#wasBusy && !isBusy;
    this.#wasBusy = isBusy;
    if (this.#isFocused) return;
    const [asked] = fresh;
    if (asked) this.#notify(`troupe asks: ${asked.title}`);
    else if (hasFinished) this.#notify(`troupe: the main agent has finished${stillAtWork(view)}`);
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

function stillAtWork({ agents }: View): string {
  const count = [...agents.values()].filter(({ status, kind }) => status === "running" && kind !== "sidekick").length;
  return count === 0 ? "" : `, ${plural(count, "agent")} at work`;
}

function standing(view: View, at: number): BriefingState {
  const agents = [...view.agents.values()];
  return {
    at,
    ended: idsOf(agents.filter(({ status }) => status === "completed" || status === "idle")),
    failed: idsOf(agents.filter(({ status }) => status === "failed" || status === "cancelled")),
    isBusy: view.main.status === "running",
    costUsd: view.main.subtree.costUsd,
  };
}

const idsOf = (agents: readonly AgentView[]): ReadonlySet<string> => new Set(agents.map(({ id }) => id));

const MAX_NAMES = 4;

/** Returns what finished, failed and asks, its cost, and the keys that lead there. Empty if nothing happened. */
function briefing(before: BriefingState, now: BriefingState, view: View): string[] {
  const asks = openAttention(view);
  const fresh = (which: "ended" | "failed"): string[] => [...now[which]].filter((id) => !before[which].has(id));
  const parts = [
    before.isBusy && !now.isBusy && "the main agent has finished",
    listNames(fresh("ended"), "done"),
    listNames(fresh("failed"), "failed"),
    asks.length > 0 && `${plural(asks.length, "request")} for you: ${asks[0]?.title ?? ""} (Ctrl+A)`,
    now.costUsd > before.costUsd && `$${(now.costUsd - before.costUsd).toFixed(2)}`,
  ].filter((part) => part !== false);
  if (parts.length === 0) return [];
  const time = new Date(before.at).toTimeString().slice(0, 5);
  return [safeLine(`since ${time}: ${parts.join(" · ")}`)];
}

function listNames(ids: readonly string[], what: string): string | false {
  if (ids.length === 0) return false;
  const more = ids.length > MAX_NAMES ? ` and ${ids.length - MAX_NAMES} more` : "";
  return `${ids.slice(0, MAX_NAMES).join(", ")}${more} ${what} (Ctrl+T)`;
}
