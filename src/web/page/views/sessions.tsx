/** All sessions: first those that need the user, then running, idle and closed ones; search over messages, answers and file names. */
import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { SessionHit, SessionRow } from "../../api.ts";
import { age, money, plural, shortPath } from "../format.ts";
import { locationText, StateLabel } from "../parts/labels.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";
import { addressOf, go } from "../route.ts";
import { call } from "../server.ts";
import { attempt, boot, isListKnown, listProblem, now, sortedRows } from "../state.ts";

const order: Readonly<Record<SessionRow["state"], number>> = { waiting: 0, working: 1, idle: 2, closed: 3 };

export function SessionsView(): JSX.Element {
  const filter = useSignal("");
  const hits = useSignal<readonly SessionHit[] | undefined>(undefined);
  const marked = useSignal<ReadonlySet<string>>(new Set());
  const words = filter.value.toLowerCase();
  const shown = sortedRows.value
    .filter((row) => fits(row, words))
    .sort((one, other) => order[one.state] - order[other.state]);
  const search = async (): Promise<void> => {
    if (filter.value.trim() === "") hits.value = undefined;
    else hits.value = await attempt(call<readonly SessionHit[]>("web.search", { words: filter.value }));
  };
  return (
    <main class="page sessions">
      <h1>Sessions</h1>
      <NewSession />
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          void search();
        }}
      >
        <input
          id="search"
          type="search"
          aria-label="Filter the list; Enter searches messages, answers and file names"
          placeholder="Filter. Press Enter to search messages, answers and file names"
          value={filter.value}
          onInput={({ currentTarget }) => {
            filter.value = currentTarget.value;
            if (currentTarget.value === "") hits.value = undefined;
          }}
        />
        <button type="submit">Search</button>
        {marked.value.size >= 2 && (
          <button
            type="button"
            class="primary"
            data-action="compare"
            onClick={() => go({ view: "compare", ids: [...marked.value] })}
          >
            Compare {marked.value.size}
          </button>
        )}
      </form>
      <Problem />
      {hits.value && <Hits hits={hits.value} />}
      {!isListKnown.value ? (
        <p class="hint">Reading the list…</p>
      ) : shown.length === 0 ? (
        <p class="hint">No session{words === "" ? " yet. Start one above, or with: troupe" : " matches."}</p>
      ) : (
        <Rows rows={shown} marked={marked} />
      )}
    </main>
  );
}

const fits = ({ name, cwd, branch, model, id }: SessionRow, words: string): boolean =>
  words === "" || [name, cwd, branch, model, id].join(" ").toLowerCase().includes(words);

function Problem(): JSX.Element | null {
  if (listProblem.value === "") return null;
  return (
    <p class="error" role="alert">
      Sessions of the database are not up to date: {sanitise(listProblem.value)}
    </p>
  );
}

function Rows({ rows, marked }: RowsProps): JSX.Element {
  const mark = (id: string): void => {
    const next = new Set(marked.value);
    if (!next.delete(id)) next.add(id);
    marked.value = next;
  };
  return (
    <VirtualList
      label="Sessions"
      class="rows"
      items={rows}
      guess={58}
      keyOf={({ id }) => id}
      render={(row) => <Row row={row} isMarked={marked.value.has(row.id)} onMark={() => mark(row.id)} />}
    />
  );
}

interface RowsProps {
  readonly rows: readonly SessionRow[];
  /** Ids of the sessions to compare. */
  readonly marked: Signal<ReadonlySet<string>>;
}

function Row({ row, isMarked, onMark }: { row: SessionRow; isMarked: boolean; onMark(): void }): JSX.Element {
  const name = row.name === "" ? row.id : row.name;
  return (
    <div class="session-row" data-row>
      <input
        type="checkbox"
        data-action="mark"
        aria-label={`Mark ${sanitise(name)} to compare`}
        checked={isMarked}
        onChange={onMark}
      />
      <a data-focus href={addressOf({ view: "session", id: row.id, tab: "run", agent: "" })}>
        <span class="title">
          <StateLabel state={row.state} />
          <span class="name">{sanitise(name).split("\n")[0]}</span>
        </span>
        <span class="facts">
          <span title={row.cwd}>{sanitise(shortPath(row.cwd))}</span>
          {row.branch !== undefined && <span>{sanitise(row.branch)}</span>}
          {row.model !== undefined && <span>{sanitise(row.model)}</span>}
          {row.agents > 0 && (
            <span>
              {row.busyAgents > 0 ? `${row.busyAgents} of ${row.agents} agents at work` : plural(row.agents, "agent")}
            </span>
          )}
          {row.holder === "other" && <span>in process {row.holderPid}</span>}
          {row.isInDatabase && <span>{locationText(row.work)}</span>}
        </span>
      </a>
      <span class="numbers">
        <span>{money(row.costUsd)}</span>
        <span class="hint">{age(row.updatedAt, now.value)}</span>
      </span>
    </div>
  );
}

function Hits({ hits }: { readonly hits: readonly SessionHit[] }): JSX.Element {
  return (
    <section class="hits" aria-label="Found">
      <h2>{hits.length === 0 ? "Nothing found" : `Found in ${plural(hits.length, "place")}`}</h2>
      {hits.map(({ sessionId, name, at, text, kind }, index) => (
        <a key={index} data-row href={addressOf({ view: "session", id: sessionId, tab: "run", agent: "" })}>
          <strong>{sanitise(name).split("\n")[0]}</strong>{" "}
          <span class="hint">
            {kind} · {age(Date.parse(at), now.value)}
          </span>
          <span class="snippet">{marks(sanitise(text))}</span>
        </a>
      ))}
    </section>
  );
}

/** The index puts what was found between » and «. */
function marks(text: string): JSX.Element[] {
  return text
    .split(/(»[^«]*«)/)
    .map((part, index) =>
      part.startsWith("»") ? <mark key={index}>{part.slice(1, -1)}</mark> : <span key={index}>{part}</span>,
    );
}

function NewSession(): JSX.Element {
  const [prompt, setPrompt] = useState("");
  const [cwd, setCwd] = useState("");
  const [isBusy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    if (prompt.trim() === "" || isBusy) return;
    setBusy(true);
    const made = await attempt(call<{ sessionId: string }>("web.create", { prompt, ...(cwd !== "" && { cwd }) }));
    setBusy(false);
    if (!made) return;
    setPrompt("");
    go({ view: "session", id: made.sessionId, tab: "run", agent: "" });
  };
  return (
    <form
      class="new"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        id="prompt"
        aria-label="Prompt for a new session"
        placeholder="Start a session: what should troupe do?"
        rows={2}
        value={prompt}
        onInput={({ currentTarget }) => setPrompt(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void send();
        }}
      />
      <input
        type="text"
        aria-label="Folder"
        placeholder={boot.value?.cwd ?? "folder"}
        value={cwd}
        onInput={({ currentTarget }) => setCwd(currentTarget.value)}
      />
      <button type="submit" class="primary" disabled={isBusy || prompt.trim() === ""}>
        Start
      </button>
    </form>
  );
}
