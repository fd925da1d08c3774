/** Small labels. Colour never stands alone: every state has its word. */
import type { JSX } from "preact";
import type { AgentStatus } from "../../../view/view.ts";
import type { SessionState } from "../../api.ts";

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
