/** The keyboard. Every key is in one table, which is also what `?` shows. Keys never act while a person types. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { treeEntries } from "./parts/agent-tree.tsx";
import { go, route, type Tab } from "./route.ts";
import { attention, session, sortedRows } from "./state.ts";

export const isHelpOpen = signal(false);

interface Key {
  readonly keys: readonly string[];
  readonly text: string;
  run(): void;
}

const table: readonly Key[] = [
  { keys: ["?"], text: "show this list", run: () => toggleHelp() },
  { keys: ["g"], text: "all sessions", run: () => go({ view: "sessions" }) },
  { keys: ["a"], text: "everything that waits for you", run: () => go({ view: "attention" }) },
  { keys: ["m"], text: "memory", run: () => go({ view: "memory" }) },
  { keys: ["/"], text: "search", run: () => focus("#search") },
  { keys: ["n"], text: "new session", run: () => openPrompt() },
  { keys: ["i"], text: "write a message", run: () => focus("#composer") },
  { keys: ["j", "ArrowDown"], text: "next agent", run: () => step(1) },
  { keys: ["k", "ArrowUp"], text: "agent before", run: () => step(-1) },
  { keys: ["1"], text: "run", run: () => tab("run") },
  { keys: ["2"], text: "changes", run: () => tab("changes") },
  { keys: ["3"], text: "cost", run: () => tab("cost") },
  { keys: ["4"], text: "memory and board", run: () => tab("memory") },
  { keys: ["["], text: "one event back", run: () => seek(-1) },
  { keys: ["]"], text: "one event forward", run: () => seek(1) },
  { keys: ["{"], text: "a hundred events back", run: () => seek(-100) },
  { keys: ["}"], text: "a hundred events forward", run: () => seek(100) },
  { keys: ["e"], text: "to the end, live", run: () => session.value?.seek(undefined) },
  { keys: ["p"], text: "play or pause", run: () => click("[data-replay=play]") },
  { keys: ["f"], text: "fork at the shown event", run: () => click("[data-replay=fork]") },
  { keys: ["y"], text: "allow once (first request on the page)", run: () => click("[data-answer=yes]") },
  { keys: ["Y"], text: "allow for this session", run: () => click("[data-answer=session]") },
  { keys: ["N"], text: "deny", run: () => click("[data-answer=no]") },
  { keys: ["X"], text: "stop the selected agent", run: () => click("[data-action=stop]") },
  { keys: ["b"], text: "selected agent to the background", run: () => click("[data-action=background]") },
  { keys: ["o"], text: "open the next session that needs you", run: () => openNext() },
];

export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape") {
      isHelpOpen.value = false;
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      return;
    }
    if (isTyping(event.target)) return;
    const found = table.find(({ keys }) => keys.includes(event.key));
    if (!found || (event.key.startsWith("Arrow") && event.target !== document.body)) return;
    event.preventDefault();
    found.run();
  });
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

function toggleHelp(): void {
  isHelpOpen.value = !isHelpOpen.value;
}

function focus(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus();
}

function click(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.click();
}

function openPrompt(): void {
  go({ view: "sessions" });
  requestAnimationFrame(() => requestAnimationFrame(() => focus("#prompt")));
}

function tab(to: Tab): void {
  if (route.value.view === "session") go({ ...route.value, tab: to });
}

function seek(by: number): void {
  const model = session.value;
  if (model) model.seek((model.position.value ?? model.length) + by);
}

function step(by: number): void {
  const at = route.value;
  const model = session.value;
  if (at.view !== "session" || !model) return;
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
      <h2>Keys</h2>
      <dl>
        {table.map(({ keys, text }) => (
          <div key={text}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key.replace("Arrow", "")}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => (isHelpOpen.value = false)}>
        Close
      </button>
    </dialog>
  );
}
