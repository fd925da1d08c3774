/**
 * One lane per agent on a time axis: model calls, tools, waits for a person and waits for a slot, told apart by colour and
 * height. Drawn on a canvas, because a long session has tens of thousands of spans. The tree beside it says the same in words.
 */
import type { JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { AgentLanes, Span, SpanKind } from "../../../view/agent-lanes.ts";
import type { View } from "../../../view/view.ts";
import { clock, duration } from "../format.ts";
import { treeEntries } from "./agent-tree.tsx";

export interface LanesProps {
  readonly lanes: AgentLanes;
  readonly view: View;
  readonly selected: string;
  readonly revision: number;
  /** Time of the shown position while a person looks back. */
  readonly until: number | undefined;
  onSelect(id: string): void;
  onSeek(sequence: number): void;
}

const LANE = 16;
const AXIS = 18;
const MAX_LANES = 40;
/** Room for the names of the agents, where the lanes are wide enough. */
const GUTTER = 116;
const MIN_NAMED = 520;
const MAX_NAME = 17;
const heights: Readonly<Record<SpanKind, number>> = { model: 10, tool: 6, wait: 12, queue: 2 };

export function LanesView(props: LanesProps): JSX.Element {
  const { lanes, view, selected, until } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useParentWidth(canvas);
  const [hover, setHover] = useState("");
  const ids = treeEntries(view)
    .flatMap(({ agent }) => (agent ? [agent.id] : []))
    .slice(0, MAX_LANES);
  const height = AXIS + Math.max(1, ids.length) * LANE;
  const from = lanes.from ?? 0;
  const to = Math.max(lanes.to, from + 1_000);
  const gutter = width > MIN_NAMED ? GUTTER : 0;
  const xOf = (at: number): number => gutter + ((at - from) / (to - from)) * (width - gutter);

  useLayoutEffect(() => {
    const element = canvas.current;
    if (element && width > 0) draw(element, { ids, lanes, selected, until, width, height, gutter, xOf, from, to });
  });

  const spanAt = (event: MouseEvent): { id: string | undefined; span: Span | undefined } => {
    const id = ids[Math.floor((event.offsetY - AXIS) / LANE)];
    const at = from + ((event.offsetX - gutter) / Math.max(1, width - gutter)) * (to - from);
    const slack = ((to - from) / Math.max(1, width)) * 3;
    const spans = id === undefined ? [] : (lanes.spans.get(id) ?? []);
    return { id, span: spans.findLast((one) => one.from - slack <= at && (one.to ?? to) + slack >= at) };
  };

  return (
    <div class="lanes">
      <canvas
        ref={canvas}
        width={width}
        height={height}
        style={{ height: `${height}px` }}
        role="img"
        aria-label={`Time axis of ${ids.length} agents from ${clock(from)} to ${clock(to)}`}
        onMouseMove={(event) => {
          const { span } = spanAt(event);
          setHover(
            span ? `${kindWords[span.kind]} ${sanitise(span.title)} · ${duration((span.to ?? to) - span.from)}` : "",
          );
        }}
        onMouseLeave={() => setHover("")}
        onClick={(event) => {
          const { id, span } = spanAt(event);
          if (id !== undefined) props.onSelect(id);
          if (span && event.shiftKey) props.onSeek(span.sequence + 1);
        }}
      />
      <Legend hover={hover} />
    </div>
  );
}

/** Width of the element around the canvas, in pixels; 0 before it is known. */
function useParentWidth(canvas: RefObject<HTMLCanvasElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

function Legend({ hover }: { readonly hover: string }): JSX.Element {
  return (
    <p class="legend">
      {(["model", "tool", "wait", "queue"] as const).map((kind) => (
        <span key={kind} class={`key ${kind}`}>
          {kindWords[kind]}
        </span>
      ))}
      <span class="hint">{hover || "shift-click or , . to look back"}</span>
    </p>
  );
}

const kindWords: Readonly<Record<SpanKind, string>> = {
  model: "model",
  tool: "tool",
  wait: "waits for you",
  queue: "queued",
};

interface CanvasInput {
  readonly ids: readonly string[];
  readonly lanes: AgentLanes;
  readonly selected: string;
  readonly until: number | undefined;
  readonly width: number;
  readonly height: number;
  /** Room for names at the left. */
  readonly gutter: number;
  readonly from: number;
  readonly to: number;
  xOf(at: number): number;
}

function draw(canvas: HTMLCanvasElement, drawing: CanvasInput): void {
  const { ids, lanes, selected, until, width, height, gutter, xOf, from, to } = drawing;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const colours = new Map<string, string>();
  const colour = (name: string): string => {
    const known = colours.get(name) ?? (style.getPropertyValue(`--${name}`).trim() || "#888");
    colours.set(name, known);
    return known;
  };
  context.font = `10px ${style.fontFamily}`;
  context.fillStyle = colour("muted");
  const ticks = Math.max(2, Math.floor((width - gutter) / 140));
  for (let tick = 0; tick < ticks; tick++) {
    const x = gutter + (tick / ticks) * (width - gutter);
    const at = Math.round(from + ((to - from) * tick) / ticks);
    context.fillText(clock(at, (to - from) / ticks < 1_000 ? 1 : 0), x + 2, 11);
    context.fillRect(x, AXIS - 4, 1, 4);
  }
  for (const [index, id] of ids.entries()) {
    const top = AXIS + index * LANE;
    if (id === selected) {
      context.fillStyle = colour("selected");
      context.fillRect(0, top, width, LANE);
    }
    context.fillStyle = colour(id === selected ? "text" : "muted");
    if (gutter > 0) context.fillText(clipped(id === "" ? "main agent" : sanitise(id)), 2, top + LANE - 4);
    drawLane(context, lanes.spans.get(id) ?? [], { top, to, xOf, colour });
  }
  if (until === undefined) return;
  context.fillStyle = colour("accent");
  context.fillRect(xOf(until) - 1, 0, 2, height);
  context.globalAlpha = 0.55;
  context.fillStyle = colour("bg");
  context.fillRect(xOf(until) + 1, AXIS, width, height);
  context.globalAlpha = 1;
}

const clipped = (name: string): string => (name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name);

function drawLane(
  context: CanvasRenderingContext2D,
  spans: readonly Span[],
  { top, to, xOf, colour }: { top: number; to: number; xOf(at: number): number; colour(name: string): string },
): void {
  let drawnTo = -1;
  for (const span of spans) {
    const x = xOf(span.from);
    const end = Math.max(x + 1.5, xOf(span.to ?? to));
    // Spans within the same pixel would only be drawn over each other.
    if (end <= drawnTo && span.kind !== "wait") continue;
    drawnTo = Math.max(drawnTo, Math.floor(end));
    const high = heights[span.kind];
    context.fillStyle = colour(span.isFailed ? "failed" : `lane-${span.kind}`);
    context.fillRect(x, top + (LANE - high) / 2, end - x, high);
  }
}
