/** Changes of a session to files: diffs per agent and message, comments on lines, undo, and the worktrees of its agents. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { ChangeStep, WorktreeRow } from "../../api.ts";
import { clock, plural, shortPath } from "../format.ts";
import { Diff, type DiffLine } from "../parts/diff.tsx";
import { call } from "../server.ts";
import type { PageSession } from "../session-model.ts";
import { attempt, tell } from "../state.ts";
import { TabBody, type TabProps } from "./lazy.tsx";

interface Blame {
  readonly text: string;
  readonly origin:
    | {
        readonly agent: string;
        readonly time: string;
        readonly tool?: string;
        readonly command?: string;
        readonly doubt?: string;
        readonly prompt?: string;
        readonly approval?: string;
        readonly facts?: string;
        readonly intent?: string;
        readonly sessionId: string;
      }
    | undefined;
}

export function ChangesTab({ model }: TabProps): JSX.Element {
  const steps = useSignal<readonly ChangeStep[] | undefined>(undefined);
  const trees = useSignal<readonly WorktreeRow[]>([]);
  const blame = useSignal<Blame | undefined>(undefined);
  const load = async (): Promise<void> => {
    const sessionId = model.id;
    steps.value = (await attempt(call<readonly ChangeStep[]>("web.changes", { sessionId }))) ?? [];
    trees.value = (await attempt(call<readonly WorktreeRow[]>("web.worktrees", { sessionId }))) ?? [];
  };
  useEffect(() => void load(), [model]);
  const about = callsOf(model);
  const until = model.position.value === undefined ? undefined : model.time;
  const shown = steps.value?.filter(({ time }) => until === undefined || Date.parse(time) <= until);
  const undo = async (toolCallId: string): Promise<void> => {
    const params = { sessionId: model.id, toolCallId };
    const report = await attempt(call<{ restored: string[]; conflicts: string[] }>("web.undo", params));
    if (!report) return;
    if (report.conflicts.length > 0)
      tell(`Nothing was undone: these files have changed since: ${report.conflicts.join(", ")}`, true);
    else tell(`Restored ${plural(report.restored.length, "file")}.`);
    await load();
  };
  return (
    <TabBody label="Changes">
      {trees.value.map((tree) => (
        <Worktree key={`${tree.isFork} ${tree.taskId}`} tree={tree} model={model} onChange={() => void load()} />
      ))}
      {blame.value && <BlameCard blame={blame.value} onClose={() => (blame.value = undefined)} />}
      {shown === undefined && <p class="hint">Reading the changes…</p>}
      {shown?.length === 0 && <p class="hint">No file was changed with a checkpoint.</p>}
      {shown?.map((step) => (
        <ChangeCard
          key={step.seq}
          {...{ model, step }}
          origin={about.get(step.toolCallId)}
          onUndo={() => void undo(step.toolCallId)}
          onBlame={(found) => (blame.value = found)}
        />
      ))}
    </TabBody>
  );
}

interface ChangeProps {
  readonly model: PageSession;
  readonly step: ChangeStep;
  readonly origin: CallFacts | undefined;
  onUndo(): void;
  onBlame(blame: Blame | undefined): void;
}

function ChangeCard({ model, step, origin, onUndo, onBlame }: ChangeProps): JSX.Element {
  return (
    <section class="change" data-row tabIndex={-1} aria-label={`Change of ${sanitise(shortPath(step.path))}`}>
      <header>
        <strong title={step.path}>{sanitise(shortPath(step.path))}</strong>
        <span class="hint">
          {step.kind} by {sanitise(origin?.agent ?? "main agent")}
          {origin?.tool === undefined ? "" : ` with ${sanitise(origin.tool)}`}, {clock(Date.parse(step.time))}
          {origin?.prompt === undefined ? "" : ` · ${sanitise(origin.prompt)}`}
        </span>
        <button type="button" data-action="undo" onClick={onUndo}>
          Undo back to here
        </button>
      </header>
      {step.diff === undefined ? (
        <p class="hint">No diff: not text, too large, or changed again by others.</p>
      ) : (
        <Diff
          diff={step.diff}
          label={`Changes of ${step.path}`}
          onComment={(line, words) => void comment(model, origin?.agentId ?? "", { step, line, words })}
          onBlame={(line) => void attempt(call<Blame>("web.blame", { path: step.path, line: line.now })).then(onBlame)}
        />
      )}
    </section>
  );
}

interface Remark {
  readonly step: ChangeStep;
  readonly line: DiffLine;
  readonly words: string;
}

/** A comment goes to the agent that made the change; to the main agent when that one has ended. */
async function comment(model: PageSession, agentId: string, { step, line, words }: Remark): Promise<void> {
  const lineKey = `${step.path}:${line.now ?? line.old ?? ""}`;
  const message = `Comment on ${lineKey}\n\n> ${line.text}\n\n${words}`;
  const sessionId = model.id;
  const agent = model.live.agents.get(agentId);
  if (agent && (agent.status === "running" || agent.status === "idle")) {
    const sent = await attempt(
      call<{ sent: boolean }>("session.tasks.sendMessage", { sessionId, id: agentId, message }),
    );
    if (sent?.sent) return tell(`Sent to ${agent.displayName}.`);
  }
  await attempt(call("session.send", { sessionId, prompt: message, mode: "enqueue" }), "Sent to the main agent.");
}

interface CallFacts {
  readonly agentId: string;
  readonly agent: string;
  readonly tool: string;
  readonly prompt: string | undefined;
}

function callsOf(model: PageSession): ReadonlyMap<string, CallFacts> {
  const found = new Map<string, CallFacts>();
  let prompt: string | undefined;
  for (const event of model.events) {
    if (event.type === "user.message" && event.agentId === undefined)
      prompt = event.data.content.split("\n")[0]?.slice(0, 80);
    if (event.type !== "tool.execution_start") continue;
    const agentId = event.agentId ?? "";
    const agent = agentId === "" ? "main agent" : (model.live.agents.get(agentId)?.displayName ?? agentId);
    found.set(event.data.toolCallId, { agentId, agent, tool: event.data.toolName, prompt });
  }
  return found;
}

function BlameCard({ blame, onClose }: { readonly blame: Blame; onClose(): void }): JSX.Element {
  const { origin, text } = blame;
  const card = useRef<HTMLElement>(null);
  const opener = useRef(document.activeElement);
  useEffect(() => card.current?.focus(), [blame]);
  const close = (): void => {
    onClose();
    if (opener.current instanceof HTMLElement) opener.current.focus();
  };
  return (
    <aside class="ask" ref={card} tabIndex={-1} aria-label="Origin of the line">
      <header>
        <strong>Where this line {origin?.doubt === undefined ? "" : "probably "}comes from</strong>
        <button type="button" class="quiet" onClick={close}>
          close
        </button>
      </header>
      <code>{sanitise(text)}</code>
      {origin ? (
        <dl>
          {(
            ["agent", "time", "tool", "command", "doubt", "prompt", "intent", "approval", "facts", "sessionId"] as const
          ).map((name) =>
            origin[name] === undefined ? null : (
              <div key={name} class="fact">
                <dt>{name === "sessionId" ? "session" : name}</dt>
                <dd>{name === "time" ? new Date(origin.time).toLocaleString() : sanitise(origin[name])}</dd>
              </div>
            ),
          )}
        </dl>
      ) : (
        <p class="hint">No recorded change wrote it: it was there before, or another program wrote it.</p>
      )}
    </aside>
  );
}

interface WorktreeProps {
  readonly tree: WorktreeRow;
  readonly model: PageSession;
  onChange(): void;
}

function Worktree({ tree, model, onChange }: WorktreeProps): JSX.Element {
  /** The work in it was not merged: a second click discards it. */
  const isRefused = useSignal(false);
  const run = async (method: string, done: string): Promise<void> => {
    const params = { sessionId: model.id, taskId: tree.taskId, isFork: tree.isFork, force: isRefused.value };
    const result = await attempt(call<{ kind: string; because?: string }>(method, params));
    if (!result) return;
    isRefused.value = method === "web.discard" && result.kind === "refused";
    const isDone = ["merged", "discarded", "nothing"].includes(result.kind);
    if (isDone) tell(done);
    else if (isRefused.value) tell("There is work in it that was not merged. Click again to discard it.", true);
    else tell(`Not done: ${result.because ?? result.kind}`, true);
    onChange();
  };
  return (
    <section
      class="change"
      data-row
      tabIndex={-1}
      aria-label={`Worktree of ${tree.isFork ? "this fork" : sanitise(tree.taskId)}`}
    >
      <header>
        <strong>Worktree of {tree.isFork ? "this fork" : sanitise(tree.taskId)}</strong>
        <span class="hint">
          {sanitise(tree.branch)} ·{" "}
          {tree.files.length === 0 ? "nothing to merge" : `${plural(tree.files.length, "file")} to merge`}
          {tree.conflicts.length > 0 && ` · conflicts: ${sanitise(tree.conflicts.join(", "))}`}
          {tree.dirty.length > 0 && ` · changed here: ${sanitise(tree.dirty.join(", "))}`}
          {tree.isProtected && " · has protected names: merge with troupe tasks merge"}
        </span>
        <button
          type="button"
          class="primary"
          data-action="merge"
          disabled={tree.files.length === 0}
          onClick={() => void run("web.merge", "Merged.")}
        >
          Merge
        </button>
        <button
          type="button"
          class="danger"
          data-action="discard"
          onClick={() => void run("web.discard", "Discarded.")}
        >
          {isRefused.value ? "Discard anyway" : "Discard"}
        </button>
      </header>
      {tree.diff !== "" && <Diff diff={tree.diff} label={`Changes of ${tree.taskId}`} />}
    </section>
  );
}
