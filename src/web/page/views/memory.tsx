/** Remembered facts and the notes of the board: source, votes, history; proposals to accept; undo of consolidations. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { KnowledgeView } from "../../api.ts";
import { age, clock } from "../format.ts";
import { Markdown } from "../parts/markdown.tsx";
import { call } from "../server.ts";
import type { PageSession } from "../session-model.ts";
import { attempt, now } from "../state.ts";
import { TabBody, type TabProps } from "./lazy.tsx";

export function MemoryTab({ model }: TabProps): JSX.Element {
  model.subscribe();
  const until = model.position.value === undefined ? undefined : model.time;
  return <KnowledgeList cwd={model.live.session.cwd ?? ""} until={until} calls={useKnowledgeCalls(model)} />;
}

const changing: ReadonlySet<string> = new Set(["context_board", "store_memory", "vote_memory"]);

/** Number of finished calls that may have changed facts or notes. It grows with the log. */
function useKnowledgeCalls(model: PageSession): number {
  const seen = useRef({ read: 0, open: new Set<string>(), count: 0 });
  const { current } = seen;
  for (; current.read < model.length; current.read++) {
    const event = model.events[current.read];
    if (event?.type === "tool.execution_start" && changing.has(event.data.toolName))
      current.open.add(event.data.toolCallId);
    if (event?.type === "tool.execution_complete" && current.open.delete(event.data.toolCallId)) current.count++;
  }
  return current.count;
}

interface ListProps {
  readonly cwd: string;
  /** Shows the facts and notes of this moment, which cannot be changed; undefined for those of now. */
  readonly until?: number | undefined;
  /** A new number reads again. */
  readonly calls?: number;
}

export function KnowledgeList({ cwd, until, calls = 0 }: ListProps): JSX.Element {
  const { known, load } = useKnowledge({ cwd, until, calls });
  const run = async (method: string, params: Readonly<Record<string, unknown>>, done: string): Promise<void> => {
    await attempt(call(method, { cwd, ...params }), done);
    await load();
  };
  if (!known) return <p class="hint">Reading…</p>;
  const { facts, notes, changes } = known;
  const order = ["proposed", "accepted", "retracted"];
  const sorted = [...facts].sort((one, other) => order.indexOf(one.status) - order.indexOf(other.status));
  const own = until === undefined ? run : undefined;
  return (
    <TabBody label="Memory and board">
      {until !== undefined && <p class="hint past">As it was at {clock(until)}.</p>}
      <section>
        <h2>Facts ({facts.length})</h2>
        {facts.length === 0 && <p class="hint">Nothing is remembered for this folder.</p>}
        {sorted.map((fact) => (
          <FactCard key={fact.id} fact={fact} run={own} />
        ))}
      </section>
      <BoardSection notes={notes} changes={changes} run={own} />
    </TabBody>
  );
}

/** Reads once for now, and once for each earlier moment that is looked at: between two changes nothing is asked for. */
function useKnowledge({ cwd, until, calls }: ListProps): { known: KnowledgeView | undefined; load(): Promise<void> } {
  const present = useSignal<KnowledgeView | undefined>(undefined);
  const past = useSignal<ReadonlyMap<string, KnowledgeView>>(new Map());
  const load = async (): Promise<void> => {
    present.value = await attempt(call<KnowledgeView>("web.knowledge", { cwd }));
    past.value = new Map();
  };
  useEffect(() => void load(), [cwd, calls]);
  const moments = present.value?.moments ?? [];
  const iso = until === undefined ? undefined : new Date(until).toISOString();
  const moment = iso === undefined ? undefined : (moments.findLast((at) => at <= iso) ?? BEFORE_ALL);
  useEffect(() => {
    if (moment === undefined || !present.value || past.value.has(moment)) return;
    void attempt(call<KnowledgeView>("web.knowledge", { cwd, until: moment })).then((found) => {
      if (found) past.value = new Map(past.value).set(moment, found);
    });
  }, [moment, present.value]);
  return { known: moment === undefined ? present.value : past.value.get(moment), load };
}

const BEFORE_ALL = "0";

type Run = (method: string, params: Readonly<Record<string, unknown>>, done: string) => Promise<void>;

interface FactProps {
  readonly fact: KnowledgeView["facts"][number];
  /** Undefined while a person looks back. */
  readonly run: Run | undefined;
}

function FactCard({ fact, run }: FactProps): JSX.Element {
  return (
    <article class={`fact-card ${fact.status}`} data-row tabIndex={-1} aria-label={`Fact: ${sanitise(fact.subject)}`}>
      <header>
        <span
          class={`state ${fact.status === "proposed" ? "state-waiting" : fact.status === "accepted" ? "state-completed" : ""}`}
        >
          {fact.status}
        </span>
        <strong>{sanitise(fact.subject)}</strong>
        <span class="hint">
          {fact.scope} · by {fact.author} · {sanitise(fact.source)} · votes {fact.votes}
          {fact.uses !== undefined && ` · used ${fact.uses}×`}
        </span>
        {run && fact.status === "proposed" && (
          <button
            type="button"
            class="primary"
            data-answer="yes"
            onClick={() => void run("web.acceptFact", { id: fact.id }, "Accepted.")}
          >
            Accept
          </button>
        )}
        {run && fact.status !== "retracted" && (
          <button
            type="button"
            class="danger"
            {...(fact.status === "proposed" && { "data-answer": "no" })}
            onClick={() => void run("web.removeFact", { id: fact.id }, "Removed.")}
          >
            {fact.status === "proposed" ? "Reject" : "Remove"}
          </button>
        )}
      </header>
      <p class="plain">{sanitise(fact.fact)}</p>
      {fact.citations !== "" && <p class="hint">{sanitise(fact.citations)}</p>}
      <details>
        <summary>history</summary>
        <ul>
          {fact.history.map(({ at, action, by }, index) => (
            <li key={index}>
              {action} by {sanitise(by)}, {age(Date.parse(at), now.value)}
            </li>
          ))}
        </ul>
      </details>
    </article>
  );
}

function BoardSection({
  notes,
  changes,
  run,
}: Pick<KnowledgeView, "notes" | "changes"> & Pick<FactProps, "run">): JSX.Element {
  return (
    <section>
      <h2>Board ({notes.length})</h2>
      {notes.length === 0 && <p class="hint">The board of this folder is empty.</p>}
      {notes.map(({ src, name, description, content }) => (
        <article key={`${src}/${name}`} class="fact-card" data-row tabIndex={-1} aria-label={`Note: ${sanitise(name)}`}>
          <header>
            <strong>{sanitise(name)}</strong>
            <span class="hint">
              {src} · {sanitise(description)}
            </span>
          </header>
          <Markdown text={content} />
        </article>
      ))}
      {changes.length > 0 && <h2>Changes of the board</h2>}
      {changes.map(({ id, at, action, actor, isUndone, names }) => (
        <p key={id} class="board-change" data-row tabIndex={-1}>
          <span class="topic">{action}</span> by {sanitise(actor)}: {sanitise(names.join(", "))}{" "}
          <span class="hint">{age(Date.parse(at), now.value)}</span> {isUndone && <span class="hint">undone</span>}
          {run && !isUndone && (
            <button
              type="button"
              class="quiet"
              data-action="undo"
              onClick={() => void run("web.restoreBoard", { change: id }, "Undone.")}
            >
              undo
            </button>
          )}
        </p>
      ))}
    </section>
  );
}

export function MemoryPage(): JSX.Element {
  return (
    <main class="page">
      <h1>Memory and board</h1>
      <KnowledgeList cwd="" />
    </main>
  );
}
