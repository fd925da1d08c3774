/** A request that waits for a person: the exact command, diff or question, what it blocks, and its answers. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AttentionItem } from "../../../view/view.ts";
import type { AttentionRow } from "../../api.ts";
import { age } from "../format.ts";
import { call } from "../server.ts";
import { attempt, now, tell } from "../state.ts";
import { FormFields } from "./form-fields.tsx";
import { Markdown } from "./markdown.tsx";

const kinds: Readonly<Record<AttentionItem["kind"], string>> = {
  ...{ permission: "approval", memory: "memory proposal", question: "question", plan: "plan", elicitation: "form" },
  ...{ sign_in: "sign-in", limit: "limit", model_switch: "model switch" },
};

export interface CardProps extends AttentionRow {
  readonly sessionId: string;
  readonly title?: JSX.Element | undefined;
  readonly isSelected?: boolean;
}

export function AttentionCard({ item, blocks, agent, sessionId, title, isSelected = false }: CardProps): JSX.Element {
  const others = blocks.filter((name) => name !== agent);
  return (
    <article class={`ask ${isSelected ? "selected" : ""}`} aria-label={`${kinds[item.kind]}: ${item.title}`}>
      <header>
        <span class="state state-waiting">{kinds[item.kind]}</span>
        <strong>{item.title}</strong>
        <span class="hint">
          {agent} · {age(item.at, now.value)}
          {others.length > 0 && ` · blocks ${others.join(", ")}`}
        </span>
        {title}
      </header>
      <Markdown text={item.text} />
      <Answers item={item} sessionId={sessionId} />
    </article>
  );
}

function Answers({ item, sessionId }: { readonly item: AttentionItem; readonly sessionId: string }): JSX.Element {
  const [words, setWords] = useState("");
  const [isBusy, setBusy] = useState(false);
  const answer = async (method: string, params: Readonly<Record<string, unknown>>): Promise<void> => {
    setBusy(true);
    const result = await attempt(call<{ success: boolean }>(method, { sessionId, requestId: item.id, ...params }));
    if (result?.success === false) tell("It was answered elsewhere.");
    setBusy(false);
  };
  const decide = (result: Readonly<Record<string, unknown>>): void =>
    void answer("session.permissions.handlePendingPermissionRequest", { result });
  const plan = (response: Readonly<Record<string, unknown>>): void =>
    void answer("session.ui.handlePendingExitPlanMode", { response });
  const feedback = words.trim() === "" ? {} : { feedback: words.trim() };

  switch (item.kind) {
    case "permission":
    case "memory":
      return (
        <div class="answers">
          <button
            type="button"
            class="primary"
            data-answer="yes"
            disabled={isBusy}
            onClick={() => decide({ kind: "approve-once" })}
          >
            {item.kind === "memory" ? "Accept" : "Allow once"}
          </button>
          {item.canAllowForSession && (
            <button
              type="button"
              data-answer="session"
              disabled={isBusy}
              onClick={() => decide({ kind: "approve-for-session" })}
            >
              Allow for this session
            </button>
          )}
          <button
            type="button"
            class="danger"
            data-answer="no"
            disabled={isBusy}
            onClick={() => decide({ kind: "reject", ...feedback })}
          >
            Deny
          </button>
          <Words label="Why not? (goes to the agent)" value={words} onChange={setWords} />
        </div>
      );
    case "question": {
      const say = (text: string, wasFreeform: boolean): void =>
        void answer("session.ui.handlePendingUserInput", { response: { answer: text, wasFreeform } });
      return (
        <div class="answers">
          {item.choices.map((choice) => (
            <button key={choice} type="button" disabled={isBusy} onClick={() => say(choice, false)}>
              {choice}
            </button>
          ))}
          {item.allowFreeform && (
            <>
              <Words label="Your answer" value={words} onChange={setWords} onEnter={() => say(words, true)} />
              <button type="button" class="primary" disabled={isBusy || words === ""} onClick={() => say(words, true)}>
                Answer
              </button>
            </>
          )}
        </div>
      );
    }
    case "plan":
      return (
        <div class="answers">
          {(item.choices.length > 0 ? item.choices : ["interactive"]).map((choice) => (
            <button
              key={choice}
              type="button"
              class="primary"
              disabled={isBusy}
              onClick={() => plan({ approved: true, selectedAction: choice })}
            >
              Approve: {choice.replaceAll("_", " ")}
            </button>
          ))}
          <button
            type="button"
            class="danger"
            data-answer="no"
            disabled={isBusy}
            onClick={() => plan({ approved: false, ...feedback })}
          >
            Reject
          </button>
          <Words label="What to change" value={words} onChange={setWords} />
        </div>
      );
    case "elicitation":
      return (
        <FormFields
          item={item}
          isBusy={isBusy}
          onAnswer={(result) => void answer("session.ui.handlePendingElicitation", { result })}
        />
      );
    case "limit":
      return (
        <div class="answers">
          <button
            type="button"
            class="primary"
            disabled={isBusy}
            onClick={() =>
              void answer("session.ui.handlePendingSessionLimitsExhausted", { response: { action: "unset" } })
            }
          >
            Remove the limit
          </button>
          <button
            type="button"
            class="danger"
            disabled={isBusy}
            onClick={() =>
              void answer("session.ui.handlePendingSessionLimitsExhausted", { response: { action: "cancel" } })
            }
          >
            Stop here
          </button>
        </div>
      );
    default:
      return <p class="hint">Answer it in the terminal of this session.</p>;
  }
}

interface WordsProps {
  readonly label: string;
  readonly value: string;
  onChange(value: string): void;
  onEnter?(): void;
}

function Words({ label, value, onChange, onEnter }: WordsProps): JSX.Element {
  return (
    <input
      type="text"
      aria-label={label}
      placeholder={label}
      value={value}
      onInput={({ currentTarget }) => onChange(currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && value !== "") onEnter?.();
      }}
    />
  );
}
