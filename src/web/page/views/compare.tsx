/** Runs side by side: a table of what each needed, and two of them from their first difference on. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import { addCosts } from "../../../model/prices.ts";
import type { SessionEvent } from "../../../protocol/event.ts";
import type { Block } from "../../../view/blocks.ts";
import { transcriptOf } from "../../../view/replay.ts";
import { usagesOf } from "../../../view/usage.ts";
import type { ChangeStep, WorktreeRow } from "../../api.ts";
import { count, duration, exactMoney, tokens } from "../format.ts";
import { BlockView } from "../parts/block.tsx";
import { TableBox } from "../parts/labels.tsx";
import { addressOf } from "../route.ts";
import { call } from "../server.ts";
import { attempt, rows, tell } from "../state.ts";

interface Run {
  readonly id: string;
  readonly events: readonly SessionEvent[];
  readonly blocks: readonly Block[];
  readonly changes: readonly ChangeStep[];
  readonly trees: readonly WorktreeRow[];
}

const MAX_RUNS = 8;
const MAX_BLOCKS = 200;

export function ComparePage({ ids }: { readonly ids: readonly string[] }): JSX.Element {
  const runs = useSignal<readonly Run[] | undefined>(undefined);
  useEffect(() => {
    void Promise.all(ids.slice(0, MAX_RUNS).map(readRun)).then((found) => {
      runs.value = found;
    });
  }, [ids.join(" ")]);
  if (!runs.value) {
    return (
      <main class="page">
        <p class="hint">Reading {ids.length} sessions…</p>
      </main>
    );
  }
  const [one, other] = runs.value;
  return (
    <main class="page">
      <h1>Compare</h1>
      <RunTable runs={runs.value} />
      {one && other && <SideBySide one={one} other={other} />}
    </main>
  );
}

async function readRun(id: string): Promise<Run> {
  const sessionId = id;
  const events = (await attempt(call<readonly SessionEvent[]>("web.events", { sessionId }))) ?? [];
  const changes = (await attempt(call<readonly ChangeStep[]>("web.changes", { sessionId }))) ?? [];
  const trees = (await attempt(call<readonly WorktreeRow[]>("web.worktrees", { sessionId }))) ?? [];
  return { id, events, blocks: [...transcriptOf(events)], changes, trees };
}

const nameOf = (id: string): string => sanitise(rows.value.get(id)?.name ?? id).split("\n")[0] ?? id;

/** Forks of a session have its name. */
const shortId = (id: string): string => id.slice(0, 8);

function RunTable({ runs }: { readonly runs: readonly Run[] }): JSX.Element {
  return (
    <TableBox label="Runs">
      <thead>
        <tr>
          <th class="words">session</th>
          <th class="words">model</th>
          <th class="words">checks</th>
          <th>changed lines</th>
          <th>model calls</th>
          <th>tokens out</th>
          <th>cost</th>
          <th>time</th>
          <th>worktree</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunRow key={run.id} run={run} />
        ))}
      </tbody>
    </TableBox>
  );
}

async function merge({ id, trees }: Run): Promise<void> {
  const [tree] = trees;
  if (!tree) return;
  const params = { sessionId: id, taskId: tree.taskId, isFork: tree.isFork };
  const result = await attempt(call<{ kind: string }>("web.merge", params));
  if (result)
    tell(
      result.kind === "merged" ? "Merged as uncommitted changes." : `Not merged: ${result.kind}`,
      result.kind !== "merged",
    );
}

function RunRow({ run }: { readonly run: Run }): JSX.Element {
  const usages = usagesOf(run.events);
  const cost = addCosts(usages.map(({ costUsd }) => costUsd));
  const [first, last] = [run.events[0], run.events.at(-1)];
  const time = first && last ? Date.parse(last.timestamp) - Date.parse(first.timestamp) : 0;
  const { added, removed } = linesOf(run.changes);
  const { passed, failed } = checksOf(run.events);
  return (
    <tr>
      <td class="words">
        <a href={addressOf({ view: "session", id: run.id, tab: "run", agent: "" })}>{nameOf(run.id)}</a>{" "}
        <span class="hint">{shortId(run.id)}</span>
      </td>
      <td class="words">{sanitise([...new Set(usages.map(({ model }) => model))].join(", "))}</td>
      <td class="words">{passed + failed === 0 ? "–" : `${passed} passed, ${failed} failed`}</td>
      <td>
        +{count(added)} −{count(removed)}
      </td>
      <td>{count(usages.length)}</td>
      <td>{tokens(usages.reduce((sum, { outputTokens }) => sum + outputTokens, 0))}</td>
      <td>{cost === null ? "unknown" : exactMoney(cost)}</td>
      <td>{duration(time)}</td>
      <td>
        {run.trees.length === 0 ? (
          "–"
        ) : (
          <button type="button" onClick={() => void merge(run)}>
            Merge this one
          </button>
        )}
      </td>
    </tr>
  );
}

function linesOf(changes: readonly ChangeStep[]): { added: number; removed: number } {
  let [added, removed] = [0, 0];
  for (const line of changes.flatMap(({ diff = "" }) => diff.split("\n"))) {
    if (line.startsWith("+")) added++;
    if (line.startsWith("-")) removed++;
  }
  return { added, removed };
}

const CHECK = /\b(test|tests|check|lint|build|tsc|pytest|vitest|jest|cargo|make)\b/;

/** Commands that look like checks, by how they ended. */
function checksOf(events: readonly SessionEvent[]): { passed: number; failed: number } {
  const open = new Set<string>();
  let [passed, failed] = [0, 0];
  for (const event of events) {
    if (event.type === "tool.execution_start" && CHECK.test(JSON.stringify(event.data.arguments ?? ""))) {
      if (/bash|shell/.test(event.data.toolName)) open.add(event.data.toolCallId);
    }
    if (event.type !== "tool.execution_complete" || !open.delete(event.data.toolCallId)) continue;
    if (event.data.success) passed++;
    else failed++;
  }
  return { passed, failed };
}

/** The content of a block, without ids and times. */
function essence(block: Block): string {
  const { id: _, at: __, eventId: ___, agentId: ____, ...rest } = block;
  return JSON.stringify(rest, (key, value: unknown) =>
    /(At|Id|interactionId|durationMs)$/.test(key) ? undefined : value,
  );
}

function SideBySide({ one, other }: { readonly one: Run; readonly other: Run }): JSX.Element {
  let same = 0;
  const [left, right] = [one.blocks.map(essence), other.blocks.map(essence)];
  while (same < left.length && same < right.length && left[same] === right[same]) same++;
  const column = (run: Run): JSX.Element => (
    <div class="column">
      <h2>
        {nameOf(run.id)} <span class="hint">{shortId(run.id)}</span>
      </h2>
      {run.blocks.slice(same, same + MAX_BLOCKS).map((block) => (
        <BlockView key={block.id} block={block} eventOf={() => undefined} onAgent={() => undefined} />
      ))}
      {run.blocks.length === same && <p class="hint">It ends here.</p>}
    </div>
  );
  const isEqual = same === left.length && same === right.length;
  return (
    <section>
      <p class="hint">{differenceText(same, isEqual)}</p>
      {!isEqual && (
        <div class="columns">
          {column(one)}
          {column(other)}
        </div>
      )}
    </section>
  );
}

function differenceText(same: number, isEqual: boolean): string {
  if (isEqual) return "They say the same.";
  return same === 0 ? "They differ from the beginning." : `The first ${same} blocks say the same. From there on:`;
}
