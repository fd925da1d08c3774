/** The sessions of the database with their current work, and what can be done about it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { ClusterView } from "../../api.ts";
import { age, plural } from "../format.ts";
import { addressOf } from "../route.ts";
import { call } from "../server.ts";
import { attempt } from "../state.ts";
import { Fact } from "./labels.tsx";

type Session = ClusterView["sessions"][number];

const labels: Readonly<Record<string, readonly [word: string, style: string]>> = {
  set_aside: ["suspended", "state-failed"],
  waiting: ["needs an answer", "state-waiting"],
  running: ["running", "state-running"],
  queued: ["waits for a place", ""],
  done: ["done", "state-completed"],
};

interface Props {
  /** Whether work that has failed may run again. */
  readonly mayRetry: boolean;
  /** Reads the state again. */
  look(): void;
}

export function ClusterSessions({ sessions, ...how }: Props & { readonly sessions: readonly Session[] }): JSX.Element {
  return (
    <section class="asks" aria-label="Sessions">
      <h2>Sessions</h2>
      {sessions.length === 0 && <p class="hint">There are no jobs. Submit one: troupe submit -p "…"</p>}
      {sessions.map((session) => (
        <SessionCard key={session.session} session={session} {...how} />
      ))}
    </section>
  );
}

const isOpen = ({ open, state }: Session): boolean => open > 0 && state !== "set_aside";
/** As `troupe cluster retry` allows it. */
const canRetry = ({ state }: Session): boolean => !["done", "waiting", "running", "queued", "unknown"].includes(state);

function SessionCard({ session, ...how }: Props & { readonly session: Session }): JSX.Element {
  const { state, prompt, tenant, pool, reason, lastActivity } = session;
  const [word, style] = labels[state] ?? [state.replaceAll("_", " "), "state-failed"];
  const name = sanitise(prompt).split("\n")[0] ?? "";
  return (
    <article class="fact-card" data-row tabIndex={-1} aria-label={`Session: ${name}`}>
      <header>
        <span class={`state ${style}`}>{word}</span>
        <strong>
          <a href={addressOf({ view: "session", id: session.session, tab: "run", agent: "" })}>{name}</a>
        </strong>
        <span class="hint">
          {session.session.slice(0, 8)} · {sanitise(tenant)} · {sanitise(pool)} ·{" "}
          {age(Date.parse(lastActivity), Date.now())}
        </span>
        <Actions session={session} {...how} />
      </header>
      {reason !== null && <p class="plain error">{sanitise(reason)}</p>}
      <details>
        <summary>details</summary>
        <Details session={session} />
      </details>
    </article>
  );
}

function Actions({ session, mayRetry, look }: Props & { readonly session: Session }): JSX.Element | null {
  const [isSure, setSure] = useState(false);
  const { work } = session;
  const run = async (method: string, done: string): Promise<void> => {
    await attempt(call(method, { work }), done);
    setSure(false);
    look();
  };
  if (canRetry(session)) {
    if (!mayRetry) return null;
    return (
      <button type="button" data-action="retry" onClick={() => void run("web.retryWork", "It runs again.")}>
        Retry
      </button>
    );
  }
  if (!isOpen(session)) return null;
  return (
    <button
      type="button"
      class="danger"
      data-action="cancel"
      onClick={() => (isSure ? void run("web.cancelWork", "Cancelled.") : setSure(true))}
      onBlur={() => setSure(false)}
    >
      {isSure ? "Click again to cancel it" : "Cancel"}
    </button>
  );
}

function Details({ session }: { readonly session: Session }): JSX.Element {
  const { session: id, work, repository, ref, worker, starts, open, takeOvers } = session;
  return (
    <dl class="cluster-facts">
      <Fact name="session">{id}</Fact>
      <Fact name="job">{sanitise(work)}</Fact>
      <Fact name="tenant">{sanitise(session.tenant)}</Fact>
      <Fact name="pool">{sanitise(session.pool)}</Fact>
      <Fact name="repository">{sanitise([repository ?? "none", ref].filter(Boolean).join(" at "))}</Fact>
      <Fact name="worker">{sanitise(worker ?? "none")}</Fact>
      <Fact name="started">{plural(starts, "time")}</Fact>
      <Fact name="open messages">{String(open)}</Fact>
      <Fact name="taken over">{plural(takeOvers, "time")}</Fact>
      <Fact name="submitted">{new Date(session.submitted).toLocaleString()}</Fact>
      <Fact name="last activity">{new Date(session.lastActivity).toLocaleString()}</Fact>
    </dl>
  );
}
