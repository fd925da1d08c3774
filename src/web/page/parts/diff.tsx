/** A unified diff as rows. A line can be commented on where `onComment` is given. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";

export interface DiffLine {
  readonly kind: "add" | "del" | "same" | "hunk" | "meta";
  readonly text: string;
  readonly old: number | undefined;
  readonly now: number | undefined;
}

const MAX_LINES = 2_000;

function diffLines(diff: string): DiffLine[] {
  let old = 0;
  let now = 0;
  const lines: DiffLine[] = [];
  for (const raw of diff.replace(/\n$/, "").split("\n")) {
    const text = sanitise(raw);
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(raw);
    if (hunk) {
      old = Number(hunk[1]);
      now = Number(hunk[2]);
      lines.push({ kind: "hunk", text, old: undefined, now: undefined });
    } else if (/^(diff --git|index |--- |\+\+\+ |new file|deleted file|similarity|rename |Binary )/.test(raw)) {
      lines.push({ kind: "meta", text, old: undefined, now: undefined });
    } else if (raw.startsWith("+")) lines.push({ kind: "add", text: text.slice(1), old: undefined, now: now++ });
    else if (raw.startsWith("-")) lines.push({ kind: "del", text: text.slice(1), old: old++, now: undefined });
    else if (raw.startsWith("\\")) lines.push({ kind: "meta", text, old: undefined, now: undefined });
    else lines.push({ kind: "same", text: text.slice(1), old: old++, now: now++ });
  }
  return lines;
}

export interface DiffProps {
  readonly diff: string;
  readonly label: string;
  readonly onComment?: ((line: DiffLine, words: string) => void) | undefined;
  readonly onBlame?: ((line: DiffLine) => void) | undefined;
}

export function Diff({ diff, label, onComment, onBlame }: DiffProps): JSX.Element {
  const [asked, setAsked] = useState<number | undefined>();
  const opener = useRef<HTMLElement | null>(null);
  const lines = diffLines(diff);
  const shown = lines.filter(({ kind }) => kind !== "meta" || lines.length === 1).slice(0, MAX_LINES);
  const hidden = lines.length - shown.length;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="diff" aria-label={label} tabIndex={0}>
      {shown.map((line, index) => (
        <div key={index}>
          <div class={`dl ${line.kind}`}>
            <span class="no">{line.old ?? ""}</span>
            <span class="no">{line.now ?? ""}</span>
            <span class="sign" aria-hidden="true">
              {line.kind === "add" ? "+" : line.kind === "del" ? "−" : " "}
            </span>
            <span class="tx">{line.text === "" ? " " : line.text}</span>
            {onBlame && line.now !== undefined && (
              <button type="button" class="quiet" title="Where does this line come from?" onClick={() => onBlame(line)}>
                why
              </button>
            )}
            {onComment && line.kind !== "hunk" && line.kind !== "meta" && (
              <button
                type="button"
                class="quiet"
                onClick={({ currentTarget }) => {
                  opener.current = currentTarget;
                  setAsked(asked === index ? undefined : index);
                }}
              >
                comment
              </button>
            )}
          </div>
          {asked === index && onComment && (
            <CommentForm
              onSend={(words) => {
                setAsked(undefined);
                onComment(line, words);
              }}
              onCancel={() => {
                setAsked(undefined);
                opener.current?.focus();
              }}
            />
          )}
        </div>
      ))}
      {hidden > 0 && shown.length === MAX_LINES && <p class="hint">{hidden} more lines are not shown.</p>}
    </section>
  );
}

function CommentForm({ onSend, onCancel }: { onSend(words: string): void; onCancel(): void }): JSX.Element {
  const [words, setWords] = useState("");
  const send = (): void => {
    if (words.trim() !== "") onSend(words.trim());
  };
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={(element) => element?.focus()}
        aria-label="Comment on this line"
        placeholder="Goes to the agent as a message"
        value={words}
        onInput={({ currentTarget }) => setWords(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            onCancel();
          }
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) send();
        }}
      />
      <button type="submit" class="primary">
        Send to the agent
      </button>
      <button type="button" onClick={onCancel}>
        Cancel
      </button>
    </form>
  );
}
