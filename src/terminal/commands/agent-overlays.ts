/** Opens the tree of agents and the run of an agent. Both can be replayed. */
import type { Block } from "../../view/blocks.ts";
import { transcriptOf } from "../../view/replay.ts";
import type { AgentView, View } from "../../view/view.ts";
import { waitChain, waitText } from "../../view/waits.ts";
import type { Host } from "../host.ts";
import { Pager } from "../overlays/pager.ts";
import { OverlayReplay } from "../overlays/replay.ts";
import { AgentTreeOverlay, usedText } from "../overlays/tree.ts";
import { messageTarget } from "../prompt-target.ts";
import { safe, safeLine } from "../screen/safe.ts";
import type { TerminalSession } from "../session.ts";
import { blockLines } from "../transcript/block-lines.ts";
import { forkSession } from "./pickers.ts";
import { readEvents } from "./read-events.ts";

export function openTree(app: Host): void {
  const { session } = app;
  if (!session) return;
  const request = (method: string, id: string): void => {
    session.request(method, { id }).catch((error: unknown) => app.fail(error));
  };
  const replay = replayOf(app, session);
  app.openOverlay(
    new AgentTreeOverlay({
      replay,
      style: app.style,
      open: (agentId) => openRun(app, agentId, replay),
      message: (agentId) => app.aim(messageTarget(agentId)),
      stop: (agentId) => request("session.tasks.cancel", agentId),
      background: (agentId) => request("session.tasks.promoteToBackground", agentId),
      answer: (itemId) => {
        app.attention.bring(itemId, app.view);
        app.attention.focus();
      },
      watch: (agentId) => app.notices.watch(agentId),
    }),
  );
}

/** The run of one agent from its first event: prompt, every turn, result. It grows while the agent works. */
export function openAgentRun(app: Host, agentId: string): void {
  if (app.session) openRun(app, agentId, replayOf(app, app.session));
}

function replayOf(app: Host, session: TerminalSession): OverlayReplay {
  return new OverlayReplay({
    session,
    keys: app.keyTable,
    onChange: () => app.screen.changed(),
    fork: (toEventId) => {
      app.closeOverlay();
      forkSession(app, toEventId).catch((error: unknown) => app.fail(error));
    },
  });
}

function openRun(app: Host, agentId: string, replay: OverlayReplay): void {
  const tree = app.overlay;
  let past: readonly Block[] = [];
  const lines = (): readonly string[] => {
    const agent = replay.view.agents.get(agentId);
    if (!agent) return [replay.isLive ? "this agent is not known any more" : "this agent is not known yet"];
    const blocks = replay.isLive ? withNewer(past, agent) : agent.blocks;
    const dropped = blocks === agent.blocks ? agent.droppedBlocks : 0;
    return [
      ...headOf(app, agent),
      ...(dropped > 0 ? [app.style.dim(`… ${dropped} earlier blocks are not kept for a replay`)] : []),
      ...blocks.flatMap((block) => blockLines(block, { style: app.style, isFull: true })),
      ...(agent.streaming?.tail ? ["", ...safe(agent.streaming.tail.text).split("\n")] : []),
      ...underWay(app, replay.view, agent),
    ];
  };
  const back = (): "close" | undefined => {
    if (!tree) return "close";
    app.openOverlay(tree);
    return undefined;
  };
  const message = (): "close" => {
    app.aim(messageTarget(agentId));
    return "close";
  };
  const pager = new Pager({
    title: `Agent ${agentId}`,
    style: app.style,
    lines,
    isFollowing: true,
    extra: {
      help: () => ["m message", replay.help].filter((part) => part).join(" · "),
      status: () => replay.status(),
      key: (key) => {
        if (replay.key(key, agentId)) return "end";
        const name = key.id ?? key.data;
        return name === "left" ? back() : name === "m" ? message() : undefined;
      },
    },
    back,
    closed: () => replay.close(),
  });
  app.openOverlay(pager);
  readEvents(app, (events) => {
    past = [...transcriptOf(events, agentId)];
  });
}

function withNewer(past: readonly Block[], { blocks }: AgentView): readonly Block[] {
  const known = new Set(past.map(({ id }) => id));
  return [...past, ...blocks.filter(({ id }) => !known.has(id))];
}

/** Calls that run, and what the agent waits for. */
function underWay({ style }: Host, view: View, agent: AgentView): string[] {
  const calls = [...agent.tools.values()].map(({ title }) => `${style.yellow("○")} ${safeLine(title)}`);
  const wait = waitText(waitChain(view, agent.id));
  return [
    ...(calls.length > 0 ? ["", ...calls] : []),
    ...(wait === "" ? [] : [style.yellow(`waits: ${safeLine(wait)}`)]),
  ];
}

function headOf({ style }: Host, agent: AgentView): string[] {
  return [
    style.bold(
      safeLine(
        [agent.displayName, agent.status, agent.modelCalls > 0 && `turn ${agent.modelCalls}`]
          .filter((fact) => fact)
          .join(" · "),
      ),
    ),
    style.dim(safeLine([usedText(agent.spent), agent.model, agent.worktree].filter((fact) => fact).join(" · "))),
    ...(agent.prompt === "" ? [] : [style.bold("Prompt"), ...safe(agent.prompt).split("\n")]),
    ...(agent.result === undefined ? [] : [style.bold("Result"), ...safe(agent.result).split("\n")]),
    ...(agent.error === undefined ? [] : [style.red(safe(agent.error))]),
    style.bold("Run"),
  ];
}
