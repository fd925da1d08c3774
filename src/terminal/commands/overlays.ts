/** Opens what is shown on the alternate screen: output, keys, the transcript. */
import { transcriptOf } from "../../view/replay.ts";
import type { Host } from "../host.ts";
import { Pager } from "../overlays/pager.ts";
import { safe, safeLine } from "../screen/safe.ts";
import { blockLines } from "../transcript/block-lines.ts";
import { localCommands } from "./list.ts";
import { readEvents } from "./read-events.ts";

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

export function openTranscript(app: Host): void {
  let lines: readonly string[] = ["reading…"];
  app.openOverlay(new Pager({ title: "Transcript", style: app.style, lines: () => lines, isFollowing: true }));
  readEvents(app, (events) => {
    lines = [...transcriptOf(events)].flatMap((block) => blockLines(block, { style: app.style, isFull: true }));
  });
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
