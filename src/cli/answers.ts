/** Writes the main agent's answers to stdout: streamed on a terminal, whole elsewhere. */
import { sanitise } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { Markdown, renderMarkdown } from "./markdown.ts";
import type { Output } from "./output/output.ts";
import type { ProgressOutput } from "./output/progress.ts";

export interface AnswerOutput {
  /** Shows the main agent's text as far as it can be shown while it arrives. */
  show(event: SessionEvent): void;
  /** Writes an answer that was not shown yet. */
  answer(text: string): void;
}

/** Writes to a pipe or file exactly the model's text. */
export const wholeAnswers = (out: Output): AnswerOutput => ({
  show: () => undefined,
  answer: (text) => out.answer(text),
});

/** A message that is being shown. */
interface Shown {
  readonly messageId: string;
  readonly markdown: Pick<Markdown, "push" | "end">;
  readonly resume: () => void;
  text: string;
}

/**
 * Writes to a terminal. Without colours the text stays unchanged, except for characters that could control the
 * terminal.
 */
export function liveAnswers(how: {
  out: Pick<Output, "text">;
  bar: Pick<ProgressOutput, "pause">;
  colour: boolean;
  columns: () => number;
}): AnswerOutput {
  const { out, bar, colour } = how;
  const width = (): number => how.columns() - 1;
  const stream = (): Shown["markdown"] => (colour ? new Markdown({ width }) : new Lines());
  let current: Shown | undefined;
  /** The last message that was shown to its end. */
  let shown: string | undefined;

  const add = (messageId: string, text: string): void => {
    if (current?.messageId !== messageId) finish();
    current ??= { messageId, markdown: stream(), resume: bar.pause(), text: "" };
    current.text += text;
    out.text(current.markdown.push(text));
  };
  const finish = (): void => {
    if (current === undefined) return;
    out.text(current.markdown.end());
    current.resume();
    current = undefined;
  };
  return {
    show(event) {
      if (event.agentId !== undefined) return;
      switch (event.type) {
        case "assistant.message_delta":
          return add(event.data.messageId, event.data.deltaContent);
        case "assistant.message": {
          const { content } = event.data;
          // Text that a hook changed after streaming, or that was not streamed, is written whole at the end.
          shown = current?.text === content ? content : undefined;
          return finish();
        }
        case "troupe.retry":
        case "abort":
        case "session.error":
          return finish();
        default:
      }
    },
    answer(text) {
      finish();
      const isShown = text === shown;
      shown = undefined;
      if (isShown || text === "") return;
      const whole = colour ? renderMarkdown(text, width()) : sanitise(text);
      out.text(whole.endsWith("\n") ? whole : `${whole}\n`);
    },
  };
}

/**
 * Releases plain text up to the last space: an escape sequence that arrives in two parts must not reach the terminal.
 */
class Lines {
  #pending = "";
  #last = "\n";

  push(text: string): string {
    this.#pending += text;
    const end = this.#pending.search(/\s\S*$/) + 1;
    const shown = sanitise(this.#pending.slice(0, end));
    this.#pending = this.#pending.slice(end);
    this.#last = shown.at(-1) ?? this.#last;
    return shown;
  }

  end(): string {
    const rest = sanitise(this.#pending);
    this.#pending = "";
    return (rest.at(-1) ?? this.#last) === "\n" ? rest : `${rest}\n`;
  }
}
