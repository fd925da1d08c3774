/** Small labels. Colour never stands alone: every state has its word. */
import type { ComponentChildren, JSX } from "preact";
import { sanitise } from "../../../lib/text.ts";
import type { AgentStatus } from "../../../view/view.ts";
import type { OpenWork, SessionState } from "../../api.ts";

const words: Readonly<Record<string, string>> = {
  waiting: "needs you",
  closed: "closed",
  cancelled: "stopped",
  queued: "queued",
  completed: "done",
};

export function StateLabel({ state }: { readonly state: SessionState | AgentStatus }): JSX.Element {
  return <span class={`state state-${state}`}>{words[state] ?? (state === "running" ? "working" : state)}</span>;
}

/** Returns where a session of the database is at the moment. */
export function locationText(work: OpenWork | undefined): string {
  return work?.worker == null ? "in the database" : `on worker ${sanitise(work.worker)}`;
}

export function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children: JSX.Element | string;
}): JSX.Element {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A table that may be wider than the page. */
export function TableBox({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="table" aria-label={label} tabIndex={0}>
      <table>{children}</table>
    </section>
  );
}
