/** The keyboard. Every key is in one table, which is also what `?` shows. Keys never act while a person types. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { needsDatabase, pages } from "./pages.ts";
import { treeEntries } from "./parts/agent-tree.tsx";
import { go, route, type Tab } from "./route.ts";
import { focusRow, inRow } from "./rows.ts";
import { attention, boot, isExported, session, sortedRows } from "./state.ts";

export const isHelpOpen = signal(false);

interface Key {
  readonly keys: readonly string[];
  readonly text: string;
  /** It has a meaning in an exported file too, which has one session and no server. */
  readonly isOffline?: true;
  readonly needsDatabase?: true;
  run(): void;
}

const everywhere: readonly Key[] = [
  { keys: ["?"], text: "show this list", isOffline: true, run: () => toggleHelp() },
  ...pages.map(
    (page): Key => ({
      ...{ keys: [page.key], text: page.text, run: () => go({ view: page.view }) },
      ...(needsDatabase(page) && { needsDatabase: true }),
    }),
  ),
  { keys: ["n"], text: "new session", run: () => toSessions("#prompt") },
  { keys: ["/"], text: "search", run: () => toSessions("#search") },
  { keys: ["o"], text: "open the next session that needs you", run: () => openNext() },
];

/** Rows are agents, or else the sessions, requests, changes and facts of the page. */
const rowKeys: readonly Key[] = [
  {
    keys: ["j", "ArrowDown"],
    text: "next row: agent, session, request, change, fact",
    isOffline: true,
    run: () => step(1),
  },
  { keys: ["k", "ArrowUp"], text: "row before", isOffline: true, run: () => step(-1) },
  { keys: ["y"], text: "allow once, accept", run: () => click("[data-answer=yes]") },
  { keys: ["Y"], text: "allow for this session", run: () => click("[data-answer=session]") },
  { keys: ["N"], text: "deny, reject", run: () => click("[data-answer=no]") },
  { keys: ["x"], text: "mark the focused session", run: () => inRow("[data-action=mark]")?.click() },
  { keys: ["c"], text: "compare the marked sessions", run: () => click("[data-action=compare]") },
  { keys: ["u"], text: "undo the focused change", run: () => inRow("[data-action=undo]")?.click() },
  { keys: ["M"], text: "merge the focused worktree", run: () => inRow("[data-action=merge]")?.click() },
  { keys: ["D"], text: "discard the focused worktree", run: () => inRow("[data-action=discard]")?.click() },
];

const sessionKeys: readonly Key[] = [
  { keys: ["1"], text: "run", isOffline: true, run: () => tab("run") },
  { keys: ["2"], text: "changes", run: () => tab("changes") },
  { keys: ["3"], text: "cost", isOffline: true, run: () => tab("cost") },
  { keys: ["4"], text: "memory and board", run: () => tab("memory") },
  { keys: ["i"], text: "write a message", run: () => writeMessage() },
  { keys: ["X"], text: "stop the selected agent", run: () => click("[data-action=stop]") },
  { keys: ["b"], text: "selected agent to the background", run: () => click("[data-action=background]") },
  { keys: ["r"], text: "resume the selected agent", run: () => click("[data-action=resume]") },
  { keys: ["["], text: "one event back", isOffline: true, run: () => seek(-1) },
  { keys: ["]"], text: "one event forward", isOffline: true, run: () => seek(1) },
  { keys: ["{"], text: "a hundred events back", isOffline: true, run: () => seek(-100) },
  { keys: ["}"], text: "a hundred events forward", isOffline: true, run: () => seek(100) },
  { keys: [","], text: "to the step before of this agent", isOffline: true, run: () => seekStep(-1) },
  { keys: ["."], text: "to the next step of this agent", isOffline: true, run: () => seekStep(1) },
  { keys: ["e"], text: "to the end, live", isOffline: true, run: () => session.value?.seek(undefined) },
  { keys: ["p"], text: "play or pause", isOffline: true, run: () => click("[data-replay=play]") },
  { keys: ["f"], text: "fork at the shown event", run: () => click("[data-replay=fork]") },
];

const groups: readonly (readonly [string, readonly Key[]])[] = [
  ["Everywhere", everywhere],
  ["Rows and requests", rowKeys],
  ["In a session", sessionKeys],
];

const offered = ({ isOffline, needsDatabase: needs }: Key): boolean =>
  isExported.value ? isOffline === true : needs !== true || boot.value?.database !== undefined;

export function startKeys(): void {
  const all = groups.flatMap(([, keys]) => keys);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape") {
      isHelpOpen.value = false;
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      return;
    }
    if (isTyping(event.target) || (isHelpOpen.value && event.key !== "?")) return;
    const found = all.find((key) => key.keys.includes(event.key) && offered(key));
    if (!found || (event.key.startsWith("Arrow") && !isForRows(event.target))) return;
    event.preventDefault();
    found.run();
  });
}

/** Fields in which a letter is text. Sliders and boxes have no use for letters. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    ["TEXTAREA", "SELECT"].includes(target.tagName) ||
    (target instanceof HTMLInputElement && !["range", "checkbox", "radio"].includes(target.type)));

/** Arrow keys scroll regions and move sliders; elsewhere they go from row to row. */
const isForRows = (target: EventTarget | null): boolean =>
  target === document.body || (target instanceof HTMLElement && target.matches("[data-row], [data-row] a"));

function toggleHelp(): void {
  isHelpOpen.value = !isHelpOpen.value;
}

const FRAMES = 30;

/** Focuses an element, which may be drawn only soon. */
function focusSoon(selector: string, frames = FRAMES): void {
  const element = document.querySelector<HTMLElement>(selector);
  if (element) element.focus();
  else if (frames > 0) requestAnimationFrame(() => focusSoon(selector, frames - 1));
}

/** Clicks in the focused row, or else on the first such element of the page. */
function click(selector: string): void {
  (inRow(selector) ?? document.querySelector<HTMLElement>(selector))?.click();
}

function toSessions(field: string): void {
  go({ view: "sessions" });
  focusSoon(field);
}

function tab(to: Tab): void {
  if (route.value.view === "session") go({ ...route.value, tab: to });
}

function writeMessage(): void {
  if (route.value.view !== "session") return;
  tab("run");
  session.value?.seek(undefined);
  focusSoon("#composer");
}

function seek(by: number): void {
  const model = session.value;
  if (model) model.seek((model.position.value ?? model.length) + by);
}

/** To the beginning of a model call, a tool call or a wait of the selected agent. */
function seekStep(by: 1 | -1): void {
  const model = session.value;
  if (!model || route.value.view !== "session") return;
  const at = model.position.value ?? model.length;
  const steps = (model.lanes.spans.get(route.value.agent) ?? [])
    .map(({ sequence }) => sequence + 1)
    .sort((one, other) => one - other);
  model.seek(by > 0 ? steps.find((step) => step > at) : (steps.findLast((step) => step < at) ?? at));
}

function step(by: 1 | -1): void {
  const at = route.value;
  const model = session.value;
  if (at.view !== "session" || at.tab !== "run" || !model) {
    focusRow(by);
    return;
  }
  const ids = treeEntries(model.view).flatMap(({ agent }) => (agent ? [agent.id] : []));
  const next = ids[Math.min(ids.length - 1, Math.max(0, ids.indexOf(at.agent) + by))];
  if (next !== undefined) go({ ...at, agent: next });
}

function openNext(): void {
  const [first] = attention.value;
  const id = first?.row.id ?? sortedRows.value[0]?.id;
  if (id !== undefined) go({ view: "session", id, tab: "run", agent: first?.item.agentId ?? "" });
}

export function Help(): JSX.Element | null {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isHelpOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isHelpOpen.value]);
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={() => (isHelpOpen.value = false)}>
      <div class="groups">
        {groups.map(([name, keys]) => (
          <KeyGroup key={name} name={name} keys={keys.filter(offered)} />
        ))}
      </div>
      <p class="hint">
        Tab reaches every field and button. In a field, Enter sends, Shift+Enter begins a line, Ctrl+Enter sends a
        comment, and Esc leaves it. Where a row has the focus, y, Y and N answer that one, or else the first of the
        page.
      </p>
      <button type="button" onClick={() => (isHelpOpen.value = false)}>
        Close
      </button>
    </dialog>
  );
}

function KeyGroup({ name, keys }: { readonly name: string; readonly keys: readonly Key[] }): JSX.Element {
  return (
    <section>
      <h2>{name}</h2>
      <dl>
        {keys.map(({ keys: names, text }) => (
          <div key={text}>
            <dt>
              {names.map((key) => (
                <kbd key={key}>{key.replace("Arrow", "")}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
