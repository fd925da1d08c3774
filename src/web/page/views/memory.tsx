/** Remembered facts and the notes of the board: source, votes, history; proposals to accept; undo of consolidations. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { KnowledgeView } from "../../api.ts";
import { age } from "../format.ts";
import { Markdown } from "../parts/markdown.tsx";
import { call } from "../server.ts";
import { attempt, now } from "../state.ts";
import { TabBody, type TabProps } from "./lazy.tsx";

export function MemoryTab({ model }: TabProps): JSX.Element {
  return <KnowledgeList cwd={model.live.session.cwd ?? ""} />;
}

export function KnowledgeList({ cwd }: { readonly cwd: string }): JSX.Element {
  const known = useSignal<KnowledgeView | undefined>(undefined);
  const load = async (): Promise<void> => {
    known.value = await attempt(call<KnowledgeView>("web.knowledge", { cwd }));
  };
  useEffect(() => void load(), [cwd]);
  const run = async (method: string, params: Readonly<Record<string, unknown>>, done: string): Promise<void> => {
    await attempt(call(method, { cwd, ...params }), done);
    await load();
  };
  if (!known.value) return <p class="hint">Reading…</p>;
  const { facts, notes, changes } = known.value;
  const order = ["proposed", "accepted", "retracted"];
  const sorted = [...facts].sort((one, other) => order.indexOf(one.status) - order.indexOf(other.status));
  return (
    <TabBody label="Memory and board">
      <section>
        <h2>Facts ({facts.length})</h2>
        {facts.length === 0 && <p class="hint">Nothing is remembered for this folder.</p>}
        {sorted.map((fact) => (
          <FactCard key={fact.id} fact={fact} run={run} />
        ))}
      </section>
      <BoardSection notes={notes} changes={changes} run={run} />
    </TabBody>
  );
}

type Run = (method: string, params: Readonly<Record<string, unknown>>, done: string) => Promise<void>;

function FactCard({ fact, run }: { readonly fact: KnowledgeView["facts"][number]; readonly run: Run }): JSX.Element {
  return (
    <article class={`fact-card ${fact.status}`}>
      <header>
        <span
          class={`state ${fact.status === "proposed" ? "state-waiting" : fact.status === "accepted" ? "state-completed" : ""}`}
        >
          {fact.status}
        </span>
        <strong>{sanitise(fact.subject)}</strong>
        <span class="hint">
          {fact.scope} · by {fact.author} · {sanitise(fact.source)} · votes {fact.votes} · used {fact.uses}×
        </span>
        {fact.status === "proposed" && (
          <button
            type="button"
            class="primary"
            data-answer="yes"
            onClick={() => void run("web.acceptFact", { id: fact.id }, "Accepted.")}
          >
            Accept
          </button>
        )}
        {fact.status !== "retracted" && (
          <button type="button" class="danger" onClick={() => void run("web.removeFact", { id: fact.id }, "Removed.")}>
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
}: Pick<KnowledgeView, "notes" | "changes"> & { readonly run: Run }): JSX.Element {
  return (
    <section>
      <h2>Board ({notes.length})</h2>
      {notes.length === 0 && <p class="hint">The board of this folder is empty.</p>}
      {notes.map(({ src, name, description, content }) => (
        <article key={`${src}/${name}`} class="fact-card">
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
        <p key={id} class="board-change">
          <span class="topic">{action}</span> by {sanitise(actor)}: {sanitise(names.join(", "))}{" "}
          <span class="hint">{age(Date.parse(at), now.value)}</span>{" "}
          {isUndone ? (
            <span class="hint">undone</span>
          ) : (
            <button type="button" class="quiet" onClick={() => void run("web.restoreBoard", { change: id }, "Undone.")}>
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
