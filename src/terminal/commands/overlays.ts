/** Opens what is shown on the alternate screen: output, agents, keys, the transcript. */
import type { SessionEvent } from "../../protocol/event.ts";
import type { Block } from "../../view/blocks.ts";
import { SessionView } from "../../view/session-view.ts";
import type { AgentView } from "../../view/view.ts";
import { waitChain, waitText } from "../../view/waits.ts";
import type { Host } from "../host.ts";
import { Pager } from "../overlays/pager.ts";
import { AgentTreeOverlay } from "../overlays/tree.ts";
import { safe, safeLine } from "../screen/safe.ts";
import { blockLines } from "../transcript/block-lines.ts";
import { localCommands } from "./list.ts";

const LAST_CALLS = 20;

/** The whole output of the last calls, read from the stored events. */
export function openOutput(app: Host): void {
  let lines: readonly string[] = ["reading…"];
  app.openOverlay(
    new Pager({ title: "Output of the last calls", style: app.style, lines: () => lines, isFollowing: true }),
  );
  readEvents(app, (events) => {
    const starts = new Map<string, string>();
    const cards: string[][] = [];
    for (const event of events) {
      if (event.type === "assistant.message" && event.data.reasoningText && event.agentId === undefined) {
        cards.push([app.style.bold("thinking"), ...safe(event.data.reasoningText).split("\n"), ""]);
      }
      if (event.type === "tool.execution_start") {
        starts.set(event.data.toolCallId, `${event.data.toolName} ${JSON.stringify(event.data.arguments ?? {})}`);
      }
      if (event.type === "tool.execution_complete") {
        const { result, error, toolCallId } = event.data;
        const text = result?.detailedContent ?? result?.content ?? error?.message ?? "";
        const who = event.agentId === undefined ? "" : ` (${event.agentId})`;
        cards.push([
          app.style.bold(`${safeLine(starts.get(toolCallId) ?? toolCallId)}${who}`),
          ...safe(text).split("\n"),
          "",
        ]);
      }
    }
    lines = cards.slice(-LAST_CALLS).flat();
    if (lines.length === 0) lines = ["no tool was called yet"];
  });
}

export function openTree(app: Host): void {
  const { session } = app;
  if (!session) return;
  const request = (method: string, id: string): void => {
    session.request(method, { id }).catch((error: unknown) => app.fail(error));
  };
  app.openOverlay(
    new AgentTreeOverlay({
      view: () => session.view,
      style: app.style,
      open: (agentId) => openAgentRun(app, agentId),
      message: (agentId) => app.aim({ kind: "agent", label: `to ${agentId} ›`, draft: "", agentId }),
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
  const { session } = app;
  const tree = app.overlay;
  let past: readonly Block[] = [];
  const lines = (): readonly string[] => {
    const agent = session?.view.agents.get(agentId);
    const known = new Set(past.map(({ id }) => id));
    const fresh = (agent?.blocks ?? []).filter(({ id }) => !known.has(id));
    const blocks = [...past, ...fresh].flatMap((block) => blockLines(block, { style: app.style, isFull: true }));
    const tail = agent?.streaming?.tail ? safe(agent.streaming.tail.text).split("\n") : [];
    return [...headOf(app, agent), ...blocks, ...tail, ...(agent ? underWay(app, agent) : [])];
  };
  const back = (): "close" | undefined => {
    if (!tree) return "close";
    app.openOverlay(tree);
    return undefined;
  };
  const pager = new Pager({
    title: `Agent ${agentId}`,
    style: app.style,
    lines,
    isFollowing: true,
    extra: { help: "m message", key: (key) => (key === "left" ? back() : message(key)) },
    back,
  });
  const message = (key: string): "close" | undefined => {
    if (key !== "m") return undefined;
    app.aim({ kind: "agent", label: `to ${agentId} ›`, draft: "", agentId });
    return "close";
  };
  app.openOverlay(pager);
  readEvents(app, (events) => {
    const fold = new SessionView();
    for (const event of events) fold.apply(event);
    past = [...(fold.view.agents.get(agentId)?.blocks ?? [])];
  });
}

/** Calls that run, and what the agent waits for. */
function underWay({ style, view }: Host, agent: AgentView): string[] {
  const calls = [...agent.tools.values()].map(({ title }) => `${style.yellow("○")} ${safeLine(title)}`);
  const wait = waitText(waitChain(view, agent.id));
  return [
    ...(calls.length > 0 ? ["", ...calls] : []),
    ...(wait === "" ? [] : [style.yellow(`waits: ${safeLine(wait)}`)]),
  ];
}

function headOf(app: Host, agent: AgentView | undefined): string[] {
  if (!agent) return ["this agent is not known any more"];
  const { style } = app;
  return [
    style.bold(safeLine(`${agent.displayName} · ${agent.status}`)),
    style.dim(safeLine([agent.model, agent.worktree].filter((fact) => fact).join(" · "))),
    style.bold("Prompt"),
    ...safe(agent.prompt).split("\n"),
    ...(agent.result === undefined ? [] : [style.bold("Result"), ...safe(agent.result).split("\n")]),
    ...(agent.error === undefined ? [] : [style.red(safe(agent.error))]),
    style.bold("Run"),
  ];
}

export function openTranscript(app: Host): void {
  let lines: readonly string[] = ["reading…"];
  app.openOverlay(new Pager({ title: "Transcript", style: app.style, lines: () => lines, isFollowing: true }));
  readEvents(app, (events) => {
    lines = transcriptOf(events).flatMap((block) => blockLines(block, { style: app.style, isFull: true }));
  });
}

/** All blocks of the main agent; drained often, so that none is dropped. */
function transcriptOf(events: readonly SessionEvent[]): Block[] {
  const fold = new SessionView();
  const blocks: Block[] = [];
  events.forEach((event, index) => {
    fold.apply(event);
    if (index % 200 === 0) blocks.push(...fold.drain());
  });
  return [...blocks, ...fold.drain()];
}

export function openKeys(app: Host): void {
  app.openOverlay(new Pager({ title: "Keys", style: app.style, lines: () => keyLines(app) }));
}

export function openHelp(app: Host): void {
  const { style } = app;
  const commands = [...localCommands, ...(app.session?.commands ?? [])];
  const unique = commands.filter(({ name }, index) => commands.findIndex((one) => one.name === name) === index);
  const lines = unique.map(
    ({ name, hint, description }) =>
      `  ${`/${name}${hint === undefined ? "" : ` ${hint}`}`.padEnd(KEY_COLUMN)}  ${safeLine(description)}`,
  );
  app.openOverlay(
    new Pager({
      title: "Help",
      style,
      lines: () => [
        style.bold("Keys"),
        ...keyLines(app),
        "",
        style.bold("Prompt"),
        "  @file        name a file; a range after a colon: @src/a.ts:10-20",
        "  !command     run a command; its output goes along with the next prompt",
        "  !!command    run a command that the model never sees",
        "",
        style.bold("Commands"),
        ...lines,
      ],
    }),
  );
}

const KEY_COLUMN = 32;

const keyLines = (app: Host): string[] =>
  app.keyTable.map(({ keys, help }) => `  ${keys.join(", ").padEnd(KEY_COLUMN)}  ${help}`);

function readEvents(app: Host, use: (events: readonly SessionEvent[]) => void): void {
  app.session?.events().then(
    (events) => {
      use(events);
      app.screen.changedByKey();
    },
    (error: unknown) => app.fail(error),
  );
}
