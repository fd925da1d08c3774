/** Requests of sessions on workers, with their answers. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import type { ClusterRequest } from "../../api.ts";
import { call } from "../server.ts";
import { attempt, tell } from "../state.ts";
import { TextField } from "./form-fields.tsx";
import { Markdown } from "./markdown.tsx";

export interface RequestProps {
  readonly request: ClusterRequest;
  /** Reads the state again. */
  onChange(): void;
}

export function RequestCard({ request, onChange }: RequestProps): JSX.Element {
  const { kind, title, text, sessionId } = request;
  return (
    <article class="ask" data-row tabIndex={-1} aria-label={`${kind}: ${title}`}>
      <header>
        <span class="state state-waiting">{kind === "permission" ? "approval" : kind}</span>
        <strong>{sanitise(title)}</strong>
        <span class="hint">session {sessionId.slice(0, 8)}</span>
      </header>
      <Markdown text={text} />
      {kind !== "other" && <Answers request={request} onChange={onChange} />}
    </article>
  );
}

type Send = (params: Readonly<Record<string, unknown>>) => void;

function Answers({ request, onChange }: RequestProps): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const { id, sessionId, kind } = request;
  const send = async (params: Readonly<Record<string, unknown>>): Promise<void> => {
    setBusy(true);
    const isFirst = await attempt(call<boolean>("web.answerRequest", { id, sessionId, ...params }));
    if (isFirst === false) tell("It was answered elsewhere.");
    setBusy(false);
    onChange();
  };
  const props = { request, isBusy, send: (params: Parameters<Send>[0]) => void send(params) };
  return <div class="answers">{kind === "question" ? <Question {...props} /> : <Decision {...props} />}</div>;
}

interface AnswerProps {
  readonly request: ClusterRequest;
  readonly isBusy: boolean;
  readonly send: Send;
}

function Question({ request: { choices, allowFreeform }, isBusy, send }: AnswerProps): JSX.Element {
  const [words, setWords] = useState("");
  const answer = (text: string, isChoice: boolean): void => send({ decision: "text", text, isChoice });
  return (
    <>
      {choices.map((choice) => (
        <button key={choice} type="button" disabled={isBusy} onClick={() => answer(choice, true)}>
          {sanitise(choice)}
        </button>
      ))}
      {allowFreeform && (
        <>
          <TextField label="Your answer" value={words} onChange={setWords} onEnter={() => answer(words, false)} />
          <button
            type="button"
            class="primary"
            disabled={isBusy || words.trim() === ""}
            onClick={() => answer(words, false)}
          >
            Answer
          </button>
        </>
      )}
    </>
  );
}

function Decision({ request: { kind }, isBusy, send }: AnswerProps): JSX.Element {
  const [words, setWords] = useState("");
  const [allow, deny, reason] =
    kind === "plan" ? ["Approve", "Reject", "What to change"] : ["Allow once", "Deny", "Why not? (goes to the agent)"];
  return (
    <>
      <button
        type="button"
        class="primary"
        data-answer="yes"
        disabled={isBusy}
        onClick={() => send({ decision: "allow" })}
      >
        {allow}
      </button>
      <button
        type="button"
        class="danger"
        data-answer="no"
        disabled={isBusy}
        onClick={() => send({ decision: "deny", text: words })}
      >
        {deny}
      </button>
      <TextField label={reason ?? ""} value={words} onChange={setWords} />
    </>
  );
}
