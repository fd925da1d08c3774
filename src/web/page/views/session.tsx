/** One session: its agents as a tree, their time as lanes, the transcript of the selected one, and what can be done with it. */
import type { JSX } from "preact";
import { sanitise } from "../../../lib/text.ts";
import type { AgentView, Spent, View } from "../../../view/view.ts";
import { money } from "../format.ts";
import { AgentTree, stateOf } from "../parts/agent-tree.tsx";
import { locationText, StateLabel } from "../parts/labels.tsx";
import { LanesView } from "../parts/lanes.tsx";
import { ReplayBar } from "../parts/replay-bar.tsx";
import { addressOf, go, type Route, type Tab } from "../route.ts";
import { call } from "../server.ts";
import type { PageSession } from "../session-model.ts";
import { attempt, isExported, isNarrow, rows, session } from "../state.ts";
import { AgentPanel } from "./agent.tsx";
import { Lazy } from "./lazy.tsx";
import { Transcript } from "./transcript.tsx";

type SessionRoute = Extract<Route, { view: "session" }>;

const tabNames: readonly (readonly [Tab, string])[] = [
  ["run", "Run"],
  ["changes", "Changes"],
  ["cost", "Cost"],
  ["memory", "Memory and board"],
];

export function SessionPage({ route }: { readonly route: SessionRoute }): JSX.Element {
  const model = session.value;
  if (!model || model.state.value === "loading") {
    return (
      <main class="page">
        <p class="hint">Reading the session…</p>
      </main>
    );
  }
  model.subscribe();
  const { view } = model;
  return (
    <main class="session">
      <Head model={model} view={view} route={route} />
      {route.tab === "run" ? (
        <Run model={model} view={view} route={route} />
      ) : isOffered(model, route.tab) ? (
        <Lazy tab={route.tab} model={model} agent={route.agent} />
      ) : (
        <p class="hint elsewhere">
          This session is in the database: its files, and what it knows of its folder, are on the machines of workers.
          Its repository has the files under refs/troupe.
        </p>
      )}
      <ReplayBar
        model={model}
        isOpen={(rows.value.get(model.id)?.state ?? "closed") !== "closed"}
        onFork={isExported.value || model.isInDatabase ? undefined : (eventId) => void fork(model, eventId)}
      />
    </main>
  );
}

/** Views that need the files of the session or of its folder are not offered where there are none. */
const isOffered = (model: PageSession, tab: Tab): boolean =>
  tab === "run" || tab === "cost" || !(isExported.value || model.isInDatabase);

async function fork(model: PageSession, eventId: string): Promise<void> {
  const made = await attempt(
    call<{ sessionId: string }>("web.fork", { sessionId: model.id, toEventId: eventId }),
    "Forked.",
  );
  if (made) go({ view: "session", id: made.sessionId, tab: "run", agent: "" });
}

function Head({ model, view, route }: { model: PageSession; view: View; route: SessionRoute }): JSX.Element {
  model.subscribe();
  const row = rows.value.get(model.id);
  const { session: facts, main } = view;
  return (
    <header class="session-head">
      <h1>{sanitise(facts.name ?? row?.name ?? model.id).split("\n")[0]}</h1>
      <span class="facts">
        {!isExported.value && <StateLabel state={row?.state ?? "closed"} />}
        {model.isInDatabase && <span>{locationText(row?.work)}</span>}
        {facts.model !== undefined && <span>{sanitise(facts.model)}</span>}
        <span title={facts.cwd ?? ""}>{sanitise(facts.cwd ?? "")}</span>
        {facts.branch !== undefined && <span>{sanitise(facts.branch)}</span>}
        {main.subtree.requests > 0 && <span>{costText(main.subtree)}</span>}
        <span class="mode">permissions: {facts.permissionMode}</span>
      </span>
      <nav class="tabs" aria-label="Views of the session">
        {tabNames
          .filter(([tab]) => isOffered(model, tab))
          .map(([tab, name]) => (
            <a key={tab} href={addressOf({ ...route, tab })} aria-current={tab === route.tab ? "page" : undefined}>
              {name}
            </a>
          ))}
      </nav>
    </header>
  );
}

const costText = ({ costUsd, isCostKnown }: Spent): string =>
  costUsd === 0 && !isCostKnown ? "cost unknown" : money(costUsd, isCostKnown);

function Run({ model, view, route }: { model: PageSession; view: View; route: SessionRoute }): JSX.Element {
  model.subscribe();
  const select = (agent: string): void => go({ ...route, agent });
  const agent: AgentView = view.agents.get(route.agent) ?? view.main;
  const isLive = model.position.value === undefined;
  const panel = <AgentPanel model={model} view={view} agent={agent} isLive={isLive} />;
  return (
    <div class="run">
      <AgentTree view={view} revision={model.revision.value} selected={agent.id} onSelect={select} />
      <div class="middle">
        {isNarrow.value && (
          <details class="sheet">
            <summary>
              {agent.kind === "main" ? "main agent" : sanitise(agent.id)} <StateLabel state={stateOf(view, agent)} />
            </summary>
            {panel}
          </details>
        )}
        <LanesView
          lanes={model.lanes}
          view={view}
          selected={agent.id}
          revision={model.revision.value}
          until={isLive ? undefined : model.time}
          onSelect={select}
          onSeek={(sequence) => model.seek(sequence)}
        />
        <Transcript key={agent.id} model={model} view={view} agent={agent} isLive={isLive} onAgent={select} />
      </div>
      {!isNarrow.value && panel}
    </div>
  );
}
