/** The cluster of the database: requests, workers, queues, sessions, take-overs, budgets and limits. Read while it is visible. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { ClusterView } from "../../api.ts";
import { age, count, duration, exactMoney, tokens } from "../format.ts";
import { RequestCard } from "../parts/cluster-requests.tsx";
import { ClusterSessions } from "../parts/cluster-sessions.tsx";
import { TableBox } from "../parts/labels.tsx";
import { call } from "../server.ts";
import { attempt, boot } from "../state.ts";

/** Time between an answer of the server and the next look; longer after an error. */
const LOOK_MS = 1_000;
const RETRY_MS = 5_000;

export function WorkersPage(): JSX.Element {
  const { view, problem, look } = useCluster();
  return (
    <main class="page">
      <h1>Workers</h1>
      <p class="hint">Database {sanitise(boot.value?.database ?? "")}</p>
      {problem !== "" && (
        <p class="error" role="alert">
          {view && "Not up to date. "}
          {sanitise(problem)}
        </p>
      )}
      {!view && problem === "" && <p class="hint">Reading…</p>}
      {view && <Cluster view={view} look={look} />}
    </main>
  );
}

/** Looks once a second while the page is visible, and at once after `look`. */
function useCluster(): { view: ClusterView | undefined; problem: string; look(): void } {
  const view = useSignal<ClusterView | undefined>(undefined);
  const problem = useSignal("");
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isGone = false;
    let isBusy = false;
    const look = async (): Promise<void> => {
      clearTimeout(timer);
      if (isBusy || isGone || document.visibilityState !== "visible") return;
      isBusy = true;
      try {
        view.value = await call<ClusterView>("web.cluster");
        problem.value = "";
      } catch (error) {
        problem.value = error instanceof Error ? error.message : String(error);
      }
      isBusy = false;
      if (!isGone) timer = setTimeout(look, problem.value === "" ? LOOK_MS : RETRY_MS);
    };
    const onVisible = (): void => void look();
    again.current = onVisible;
    document.addEventListener("visibilitychange", onVisible);
    void look();
    return () => {
      isGone = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, []);
  return { view: view.value, problem: problem.value, look: () => again.current() };
}

interface ClusterProps {
  readonly view: ClusterView;
  look(): void;
}

function Cluster({ view, look }: ClusterProps): JSX.Element {
  const { requests, sessions, takeOvers, budgets, limits } = view;
  return (
    <>
      {requests.length > 0 && (
        <section class="asks" aria-label="Requests">
          {requests.map((request) => (
            <RequestCard key={`${request.sessionId} ${request.id}`} request={request} onChange={look} />
          ))}
        </section>
      )}
      {view.isTenant ? (
        <p class="hint">
          This database role belongs to a tenant. It sees, answers and cancels its own work, and is not shown workers
          and limits of providers. The owner of the tables sees everything, and retries and drains.
        </p>
      ) : (
        <WorkerTable view={view} look={look} />
      )}
      <QueueTable view={view} />
      <ClusterSessions sessions={sessions} mayRetry={!view.isTenant} look={look} />
      {takeOvers.length > 0 && <TakeOverTable view={view} />}
      {budgets.length > 0 && <BudgetTable view={view} />}
      {limits.length > 0 && <LimitTable view={view} />}
    </>
  );
}

const stateClasses: Readonly<Record<string, string>> = {
  alive: "state-completed",
  draining: "state-waiting",
  drained: "",
  lost: "state-failed",
};

function WorkerTable({ view: { workers }, look }: ClusterProps): JSX.Element {
  if (workers.length === 0) return <p class="hint">No worker runs. Start one: troupe worker --database …</p>;
  return (
    <TableBox label="Workers">
      <thead>
        <tr>
          <th class="words">worker</th>
          <th class="words">pool</th>
          <th class="words">state</th>
          <th>lease</th>
          <th>slots used</th>
          <th>free</th>
          <th>action</th>
        </tr>
      </thead>
      <tbody>
        {workers.map((worker) => (
          <WorkerRow key={worker.worker} worker={worker} look={look} />
        ))}
      </tbody>
    </TableBox>
  );
}

function WorkerRow({ worker, look }: { worker: ClusterView["workers"][number]; look(): void }): JSX.Element {
  const { state, sessions, concurrency, leaseMs, pool, tenant } = worker;
  const drain = async (): Promise<void> => {
    const isAsked = state === "alive";
    await attempt(
      call("web.drain", { worker: worker.worker, isAsked }),
      isAsked ? "The worker finishes its sessions and takes no new jobs." : "The worker takes jobs again.",
    );
    look();
  };
  const isServing = state === "alive";
  return (
    <tr data-row tabIndex={-1}>
      <td class="words" title={`troupe ${worker.version}, ${worker.host}, process ${worker.pid}`}>
        {sanitise(worker.worker)}
      </td>
      <td class="words">{sanitise(tenant === null ? pool : `${pool}, only ${tenant}`)}</td>
      <td class="words">
        <span class={`state ${stateClasses[state] ?? ""}`}>{state}</span>
      </td>
      <td>{leaseMs < 0 ? `expired ${duration(-leaseMs)} ago` : `${duration(leaseMs)} left`}</td>
      <td>{count(sessions)}</td>
      <td>{isServing ? count(Math.max(0, concurrency - sessions)) : "–"}</td>
      <td>
        {state !== "lost" && (
          <button type="button" data-action={isServing ? "drain" : "undo"} onClick={() => void drain()}>
            {isServing ? "Drain" : "Take jobs again"}
          </button>
        )}
      </td>
    </tr>
  );
}

function QueueTable({ view: { queues } }: Pick<ClusterProps, "view">): JSX.Element {
  if (queues.length === 0) return <p class="hint">No work waits or runs.</p>;
  return (
    <TableBox label="Queues">
      <thead>
        <tr>
          <th class="words">tenant</th>
          <th class="words">pool</th>
          <th>waiting</th>
          <th>oldest</th>
          <th>running</th>
          <th>parked</th>
          <th>suspended</th>
        </tr>
      </thead>
      <tbody>
        {queues.map(({ pool, tenant, waiting, running, parked, setAside, oldestMs }) => (
          <tr key={`${pool} ${tenant}`}>
            <td class="words">{sanitise(tenant)}</td>
            <td class="words">{sanitise(pool)}</td>
            <td>{count(waiting)}</td>
            <td>{oldestMs === null ? "–" : duration(oldestMs)}</td>
            <td>{count(running)}</td>
            <td>{count(parked)}</td>
            <td>{count(setAside)}</td>
          </tr>
        ))}
      </tbody>
    </TableBox>
  );
}

function TakeOverTable({ view: { takeOvers } }: Pick<ClusterProps, "view">): JSX.Element {
  return (
    <>
      <h2>Take-overs</h2>
      <TableBox label="Take-overs">
        <thead>
          <tr>
            <th class="words">session</th>
            <th class="words">from</th>
            <th class="words">to</th>
            <th>times</th>
            <th>last</th>
          </tr>
        </thead>
        <tbody>
          {takeOvers.map(({ session, from, to, count: times, at }) => (
            <tr key={session}>
              <td class="words">{session.slice(0, 8)}</td>
              <td class="words">{sanitise(from ?? "not known")}</td>
              <td class="words">{sanitise(to ?? "not known")}</td>
              <td>{count(times)}</td>
              <td title={at}>{age(Date.parse(at), Date.now())}</td>
            </tr>
          ))}
        </tbody>
      </TableBox>
    </>
  );
}

function BudgetTable({ view: { budgets } }: Pick<ClusterProps, "view">): JSX.Element {
  return (
    <>
      <h2>Budgets</h2>
      <TableBox label="Budgets">
        <thead>
          <tr>
            <th class="words">tenant</th>
            <th class="words">per</th>
            <th>limit</th>
            <th>used</th>
            <th>reserved</th>
            <th>token limit</th>
            <th>used</th>
            <th>reserved</th>
          </tr>
        </thead>
        <tbody>
          {budgets.map((budget) => (
            <tr key={budget.tenant}>
              <td class="words">{sanitise(budget.tenant)}</td>
              <td class="words">{budget.period}</td>
              <td>{budget.costUsd === null ? "none" : exactMoney(budget.costUsd)}</td>
              <td>{exactMoney(budget.spentUsd)}</td>
              <td>{budget.heldUsd === null ? "–" : exactMoney(budget.heldUsd)}</td>
              <td>{budget.tokens === null ? "none" : tokens(budget.tokens)}</td>
              <td>{tokens(budget.spentTokens)}</td>
              <td>{budget.heldTokens === null ? "–" : tokens(budget.heldTokens)}</td>
            </tr>
          ))}
        </tbody>
      </TableBox>
    </>
  );
}

function LimitTable({ view: { limits } }: Pick<ClusterProps, "view">): JSX.Element {
  return (
    <>
      <h2>Provider limits</h2>
      <TableBox label="Provider limits">
        <thead>
          <tr>
            <th class="words">model</th>
            <th class="words">gate</th>
            <th>a minute</th>
            <th>at a time</th>
            <th>running</th>
            <th>waiting</th>
          </tr>
        </thead>
        <tbody>
          {limits.map(({ name, gateMs, requestsPerMinute, concurrency, running, waiting }) => (
            <tr key={name}>
              <td class="words">{sanitise(name)}</td>
              <td class="words">
                {gateMs === null ? (
                  <span class="state state-completed">open</span>
                ) : (
                  <span class="state state-failed">shut, next try in {duration(gateMs)}</span>
                )}
              </td>
              <td>{requestsPerMinute === null ? "no limit" : count(requestsPerMinute)}</td>
              <td>{concurrency === null ? "no limit" : count(concurrency)}</td>
              <td>{count(running)}</td>
              <td>{count(waiting)}</td>
            </tr>
          ))}
        </tbody>
      </TableBox>
    </>
  );
}
