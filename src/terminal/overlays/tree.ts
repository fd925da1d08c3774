/** All agents of the session as a tree: who works on what, what it used, and what it waits for. */
import { agentRows, currentOutput, groupText } from "../../view/agent-rows.ts";
import { isBusy } from "../../view/draft.ts";
import type { AgentView, Spent, View } from "../../view/view.ts";
import { type WaitLink, waitChain, waitText } from "../../view/waits.ts";
import { agentRow, waitOf } from "../panels/strip.ts";
import { safeLine } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";
import { keyRows } from "../screen/width.ts";
import { wrapStyled } from "../screen/wrap.ts";
import { tokensText } from "../transcript/block-lines.ts";
import { type Overlay, overlayRows, type Size, scrollTo } from "./overlay.ts";
import type { OverlayReplay } from "./replay.ts";

export interface TreePorts {
  /** The view to draw, live or of an earlier moment. */
  readonly replay: OverlayReplay;
  readonly style: Style;
  open(agentId: string): void;
  message(agentId: string): void;
  stop(agentId: string): void;
  background(agentId: string): void;
  /** Shows the request that the agent waits for. */
  answer(itemId: string): void;
  /** Tells the user when the agent has ended. Returns false when that was asked for before: then no longer. */
  watch(agentId: string): boolean;
}

export class AgentTreeOverlay implements Overlay {
  readonly #ports: TreePorts;
  /** The selection stays on its agent when others come and go; its row is for an agent that has gone. */
  #selectedId: string | undefined;
  #selected = 0;
  #top = 0;
  /** The agent for which `x` was pressed once. */
  #armed: string | undefined;
  #showsFinished = true;
  #said = "";

  constructor(ports: TreePorts) {
    this.#ports = ports;
  }

  get #agents(): readonly AgentView[] {
    return this.#tree.flatMap((row) => (row.kind === "agent" ? [row.agent] : []));
  }

  get #tree() {
    return agentRows(this.#view, this.#showsFinished ? undefined : isBusy);
  }

  get #view(): View {
    return this.#ports.replay.view;
  }

  #selection(agents = this.#agents): AgentView | undefined {
    const index = agents.findIndex(({ id }) => id === this.#selectedId);
    this.#selected = index < 0 ? Math.max(0, Math.min(this.#selected, agents.length - 1)) : index;
    const agent = agents[this.#selected];
    this.#selectedId ??= agent?.id;
    return agent;
  }

  #select(by: number): undefined {
    const agents = this.#agents;
    this.#selection(agents);
    this.#selectedId = agents[Math.max(0, Math.min(this.#selected + by, agents.length - 1))]?.id;
  }

  closed(): void {
    this.#ports.replay.close();
  }

  rows(size: Size): readonly string[] {
    const { style, replay } = this.#ports;
    const agents = this.#agents;
    const { now } = replay;
    const selected = this.#selection(agents);
    const details = this.#details(selected, size.columns);
    const status = keyRows(replay.status() ?? "", size.columns - 1).filter((row) => row !== "");
    const keys = keyRows([`${this.#said}${KEYS}`, replay.help].filter((part) => part).join(" · "), size.columns - 1);
    const armed = this.#armed === undefined ? [] : [style.red(`press x again to stop ${safeLine(this.#armed)}`)];
    const footer = [...armed, ...status.map(style.yellow), ...keys.map(style.dim)];
    const room = Math.max(1, size.rows - 2 - footer.length - details.length);
    const lines = this.#tree.map((row) => {
      const indent = "  ".repeat(row.depth);
      if (row.kind === "group")
        return { id: undefined, text: `  ${indent}${style.bold(safeLine(groupText(row.agents)))}` };
      const { agent } = row;
      const isSelected = agent === selected;
      const text = `${isSelected ? "▸" : " "} ${indent}${agentRow(agent, { style, now, wait: waitOf(this.#view, agent) })}`;
      return { id: agent.id, text: isSelected ? style.bold(text) : text };
    });
    const at = Math.max(
      0,
      lines.findIndex(({ id }) => id !== undefined && id === selected?.id),
    );
    this.#top = scrollTo(at, Math.min(this.#top, Math.max(0, lines.length - room)), room);
    const list = lines.slice(this.#top, this.#top + room).map(({ text }) => text);
    const filled = [...list, ...Array.from({ length: Math.max(0, room - list.length) }, () => "")];
    const empty = agents.length === 0 ? [style.dim("  no agents yet")] : [];
    const count = agents.filter(({ status }) => status === "running" || status === "queued").length;
    return overlayRows(size, {
      title: style.bold(`Agents · ${count} at work · ${agents.length} shown`),
      body: [...empty, ...filled.slice(empty.length), style.dim("─".repeat(20)), ...details],
      footer,
    });
  }

  /** Each fact on at most three rows. */
  #details(agent: AgentView | undefined, columns: number): string[] {
    return this.#facts(agent).flatMap((fact) => wrapStyled(fact, Math.max(1, columns - 1)).slice(0, 3));
  }

  #facts(agent: AgentView | undefined): string[] {
    if (!agent) return [];
    const { style } = this.#ports;
    const facts = [agent.model, agent.worktree && `worktree ${agent.worktree}`].filter((fact) => fact);
    const chain = waitChain(this.#view, agent.id);
    const wait = waitText(chain);
    const about = [agent.id, agent.kind === "sidekick" && "sidekick", agent.description].filter((part) => part);
    return [
      safeLine(about.join(" · ")),
      style.dim(
        [usedText(agent.subtree, " with its agents"), ...facts.map((fact) => safeLine(fact ?? ""))].join(" · "),
      ),
      ...(agent.prompt === "" ? [] : [style.dim(`prompt: ${safeLine(agent.prompt).slice(0, 300)}`)]),
      ...(agent.result === undefined
        ? lastOf(agent).map((text) => style.dim(`last: ${text}`))
        : [style.dim(`result: ${safeLine(agent.result).slice(0, 300)}`)]),
      ...(agent.error === undefined ? [] : [style.red(`error: ${safeLine(agent.error).slice(0, 300)}`)]),
      ...(wait === "" ? [] : [style.yellow(`waits: ${safeLine(wait)}${resolvedBy(chain)}`)]),
    ];
  }

  key({ id, data }: { readonly id: string | undefined; readonly data: string }): "close" | undefined {
    const key = id ?? data;
    if (key !== "x") this.#armed = undefined;
    this.#said = "";
    if (this.#ports.replay.key({ id, data })) return undefined;
    switch (key) {
      case "q":
      case "escape":
      case "right":
      case "ctrl+c":
      case "ctrl+t":
        return "close";
      case "up":
      case "k":
        return this.#select(-1);
      case "down":
      case "j":
        return this.#select(1);
      case "f":
        this.#showsFinished = !this.#showsFinished;
        return undefined;
      default: {
        const agent = this.#selection();
        return agent ? this.#act(agent, key) : undefined;
      }
    }
  }

  #act(agent: AgentView, key: string): "close" | undefined {
    // The agent may be in another state by now.
    if (!this.#ports.replay.isLive && "abwx".includes(key)) {
      this.#said = "only the live tree acts on agents · ";
      return undefined;
    }
    switch (key) {
      case "enter":
        this.#ports.open(agent.id);
        return undefined;
      case "m":
        this.#ports.message(agent.id);
        return "close";
      case "b":
        this.#ports.background(agent.id);
        return undefined;
      case "a": {
        const link = waitChain(this.#view, agent.id).findLast(({ kind }) => kind === "attention");
        if (link?.kind !== "attention") return undefined;
        this.#ports.answer(link.item.id);
        return "close";
      }
      case "w":
        this.#said = this.#ports.watch(agent.id) ? "you are told when it is done · " : "you are not told any more · ";
        return undefined;
      case "x":
        if (this.#armed === agent.id) this.#ports.stop(agent.id);
        this.#armed = this.#armed === agent.id ? undefined : agent.id;
        return undefined;
      default:
        return undefined;
    }
  }
}

const KEYS = "Enter open · m message · a answer · w wait · x x stop · b background · f finished · q close";

/** Tokens and cost; the note says whose cost it is. */
export function usedText({ inputTokens, outputTokens, costUsd }: Spent, note = ""): string {
  const cost = costUsd > 0 ? ` · $${costUsd.toFixed(3)}${note}` : "";
  return `${tokensText(inputTokens)} in, ${tokensText(outputTokens)} out${cost}`;
}

/** The last line that it wrote or read, or is writing. */
const lastOf = (agent: AgentView): string[] => {
  const text = safeLine(currentOutput(agent)).trim().slice(0, 200);
  return text === "" ? [] : [text];
};

/** The key that ends the wait, where there is one. */
function resolvedBy(chain: readonly WaitLink[]): string {
  switch (chain.at(-1)?.kind) {
    case "attention":
      return " · a answers it";
    case "agent":
      return " · x x on it stops it";
    case "slot":
      return " · x x on another agent makes room";
    default:
      return "";
  }
}
