/** A list of which only the rows near the viewport are in the document. Heights are measured; unknown ones are guessed. */
import type { ComponentChildren, JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface VirtualListProps<T> {
  readonly items: readonly T[];
  keyOf(item: T): string;
  render(item: T, index: number): ComponentChildren;
  /** Height of a row that was never drawn, in pixels. */
  readonly guess: number;
  readonly label: string;
  /** Stays at the end while items are added, if it is there. */
  readonly followsEnd?: boolean;
  readonly class?: string;
  /** Content behind the last row. */
  readonly footer?: ComponentChildren;
  /** Scrolls this row into view when it changes. */
  readonly focusKey?: string | undefined;
}

/** Rows drawn above and below the viewport, in pixels. */
const MARGIN = 600;
const MAX_ROWS = 250;

export function VirtualList<T>(props: VirtualListProps<T>): JSX.Element {
  const { items, keyOf, render, guess, followsEnd = false } = props;
  const outer = useRef<HTMLElement>(null);
  const heights = useRef(new Map<string, number>());
  const isAtEnd = useRef(followsEnd);
  const [scroll, setScroll] = useState({ top: 0, height: 800 });
  const [, setMeasured] = useState(0);

  const tops = topsOf(items, (item) => heights.current.get(keyOf(item)) ?? guess);
  const total = tops[items.length] ?? 0;
  const first = Math.max(0, indexAt(tops, scroll.top - MARGIN));
  const last = Math.min(items.length, indexAt(tops, scroll.top + scroll.height + MARGIN) + 1, first + MAX_ROWS);

  const look = (): void => {
    const element = outer.current;
    if (!element) return;
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    setScroll({ top: element.scrollTop, height: element.clientHeight });
  };

  useResize(outer, look);

  useLayoutEffect(() => {
    const element = outer.current;
    if (!element) return;
    const { shift, isChanged } = measure(element, heights.current, guess);
    if (followsEnd && isAtEnd.current) element.scrollTop = element.scrollHeight;
    else if (shift !== 0) element.scrollTop += shift;
    if (isChanged) setMeasured((value) => value + 1);
  });

  const { focusKey } = props;
  useLayoutEffect(() => {
    const element = outer.current;
    const index = focusKey === undefined ? -1 : items.findIndex((item) => keyOf(item) === focusKey);
    if (!element || index === -1) return;
    reveal(element, tops[index] ?? 0, tops[index + 1] ?? 0);
  }, [focusKey]);

  return (
    <section
      ref={outer}
      class={`list ${props.class ?? ""}`}
      onScroll={look}
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
      tabIndex={0}
    >
      <div class="spacer" style={{ height: `${tops[first] ?? 0}px` }} />
      {items.slice(first, last).map((item, index) => (
        <div key={keyOf(item)} data-key={keyOf(item)} class="row">
          {render(item, first + index)}
        </div>
      ))}
      <div class="spacer" style={{ height: `${total - (tops[last] ?? total)}px` }} />
      {props.footer}
    </section>
  );
}

/** Calls back when the element has a new size. The first callback stays. */
function useResize(outer: RefObject<HTMLElement | null>, onResize: () => void): void {
  useEffect(() => {
    const element = outer.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(onResize);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
}

/** Scrolls as little as possible to show what lies between these heights. */
function reveal(element: HTMLElement, top: number, bottom: number): void {
  if (top < element.scrollTop) element.scrollTop = top;
  else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
}

/** Heights at which the rows begin, and at which the last one ends. */
function topsOf<T>(items: readonly T[], heightOf: (item: T) => number): Float64Array {
  const tops = new Float64Array(items.length + 1);
  items.forEach((item, index) => {
    tops[index + 1] = (tops[index] ?? 0) + heightOf(item);
  });
  return tops;
}

interface Measured {
  /** By how much the rows above the viewport grew, in pixels. */
  readonly shift: number;
  readonly isChanged: boolean;
}

/** Stores the heights of the rows that are drawn. */
function measure(element: HTMLElement, heights: Map<string, number>, guess: number): Measured {
  let shift = 0;
  let isChanged = false;
  for (const row of element.querySelectorAll<HTMLElement>("[data-key]")) {
    const key = row.dataset.key ?? "";
    const height = row.offsetHeight;
    const known = heights.get(key);
    if (known === height || height === 0) continue;
    heights.set(key, height);
    isChanged = true;
    if (row.offsetTop + (known ?? guess) < element.scrollTop) shift += height - (known ?? guess);
  }
  return { shift, isChanged };
}

/** Index of the row at this height, by bisection. */
function indexAt(tops: Float64Array, y: number): number {
  let low = 0;
  let high = tops.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((tops[middle] ?? 0) <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}
