/** A request that waits for a person: the exact command, diff or question, what it blocks, and its answers. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AttentionItem } from "../../../view/view.ts";
import { choiceLabel } from "../../../view/waits.ts";
import type { AttentionRow, SignInBegun } from "../../api.ts";
import { age } from "../format.ts";
import { call } from "../server.ts";
import { attempt, now, tell } from "../state.ts";
import { FormFields, OutsideLink, TextField } from "./form-fields.tsx";
import { Markdown } from "./markdown.tsx";

const kinds: Readonly<Record<AttentionItem["kind"], string>> = {
  permission: "approval",
  memory: "memory proposal",
  question: "question",
  plan: "plan",
  elicitation: "form",
  sign_in: "sign-in",
  limit: "limit",
  model_switch: "model switch",
};

export interface CardProps extends AttentionRow {
  readonly sessionId: string;
  readonly title?: JSX.Element | undefined;
  readonly isSelected?: boolean;
}

export function AttentionCard({ item, blocks, agent, sessionId, title, isSelected = false }: CardProps): JSX.Element {
  const others = blocks.filter((name) => name !== agent);
  return (
    <article
      class={`ask ${isSelected ? "selected" : ""}`}
      data-row
      tabIndex={-1}
      aria-label={`${kinds[item.kind]}: ${item.title}`}
    >
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

/** Ids of sign-ins that this server offers, before the name of the MCP server. */
const SIGN_IN_ID = "sign-in ";

type Result = Readonly<Record<string, unknown>>;

interface AnswerProps {
  readonly item: AttentionItem;
  readonly isBusy: boolean;
  /** Calls the method with the request's id and these parameters. */
  onAnswer(method: string, params: Result): void;
}

function Answers({ item, sessionId }: { readonly item: AttentionItem; readonly sessionId: string }): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const send = async (method: string, params: Result): Promise<void> => {
    setBusy(true);
    const result = await attempt(call<{ success: boolean }>(method, { sessionId, requestId: item.id, ...params }));
    if (result?.success === false) tell("It was answered elsewhere.");
    setBusy(false);
  };
  const props: AnswerProps = { item, isBusy, onAnswer: (method, params) => void send(method, params) };
  switch (item.kind) {
    case "permission":
    case "memory":
      return <PermissionAnswers {...props} />;
    case "question":
      return <QuestionAnswers {...props} />;
    case "plan":
      return <PlanAnswers {...props} />;
    case "elicitation":
      return (
        <FormFields
          item={item}
          isBusy={isBusy}
          onAnswer={(result) => props.onAnswer("session.ui.handlePendingElicitation", { result })}
        />
      );
    case "limit":
      return <LimitAnswers {...props} />;
    case "sign_in":
      return item.id.startsWith(SIGN_IN_ID) ? (
        <SignInAnswers server={item.id.slice(SIGN_IN_ID.length)} sessionId={sessionId} />
      ) : (
        <HostSignIn {...props} />
      );
    default:
      return <p class="hint">Answer it in the terminal of this session.</p>;
  }
}

const feedbackOf = (words: string): Result => (words.trim() === "" ? {} : { feedback: words.trim() });

function PermissionAnswers({ item, isBusy, onAnswer }: AnswerProps): JSX.Element {
  const [words, setWords] = useState("");
  const decide = (result: Result): void => onAnswer("session.permissions.handlePendingPermissionRequest", { result });
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
        onClick={() => decide({ kind: "reject", ...feedbackOf(words) })}
      >
        Deny
      </button>
      <TextField label="Why not? (goes to the agent)" value={words} onChange={setWords} />
    </div>
  );
}

const sentenceCase = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

function QuestionAnswers({ item, isBusy, onAnswer }: AnswerProps): JSX.Element {
  const [words, setWords] = useState("");
  const sendAnswer = (text: string, wasFreeform: boolean): void =>
    onAnswer("session.ui.handlePendingUserInput", { response: { answer: text, wasFreeform } });
  return (
    <div class="answers">
      {item.choices.map((choice) => (
        <button key={choice} type="button" disabled={isBusy} onClick={() => sendAnswer(choice, false)}>
          {choice}
        </button>
      ))}
      {item.allowFreeform && (
        <>
          <TextField label="Your answer" value={words} onChange={setWords} onEnter={() => sendAnswer(words, true)} />
          <button
            type="button"
            class="primary"
            disabled={isBusy || words === ""}
            onClick={() => sendAnswer(words, true)}
          >
            Answer
          </button>
        </>
      )}
    </div>
  );
}

function PlanAnswers({ item, isBusy, onAnswer }: AnswerProps): JSX.Element {
  const [words, setWords] = useState("");
  const decide = (response: Result): void => onAnswer("session.ui.handlePendingExitPlanMode", { response });
  return (
    <div class="answers">
      {(item.choices.length > 0 ? item.choices : ["interactive"]).map((choice) => (
        <button
          key={choice}
          type="button"
          class="primary"
          disabled={isBusy}
          onClick={() => decide({ approved: true, selectedAction: choice })}
        >
          {sentenceCase(choiceLabel(item, choice))}
        </button>
      ))}
      <button
        type="button"
        class="danger"
        data-answer="no"
        disabled={isBusy}
        onClick={() => decide({ approved: false, ...feedbackOf(words) })}
      >
        Reject
      </button>
      <TextField label="What to change" value={words} onChange={setWords} />
    </div>
  );
}

function LimitAnswers({ isBusy, onAnswer }: AnswerProps): JSX.Element {
  const choose = (action: "unset" | "cancel"): void =>
    onAnswer("session.ui.handlePendingSessionLimitsExhausted", { response: { action } });
  return (
    <div class="answers">
      <button type="button" class="primary" disabled={isBusy} onClick={() => choose("unset")}>
        Remove the limit
      </button>
      <button type="button" class="danger" disabled={isBusy} onClick={() => choose("cancel")}>
        Stop here
      </button>
    </div>
  );
}

/** Signs in by this server: it names the address, and the browser comes back to it. */
function SignInAnswers({ server, sessionId }: { readonly server: string; readonly sessionId: string }): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const [address, setAddress] = useState<string | undefined>();
  const begin = async (): Promise<void> => {
    setBusy(true);
    const begun = await attempt(call<SignInBegun>("web.signIn", { sessionId, server }));
    setBusy(false);
    if (begun?.address !== undefined) setAddress(begun.address);
    else if (begun) tell(`Signed in to ${server}.`);
  };
  return (
    <div class="answers">
      {address === undefined ? (
        <button type="button" class="primary" data-answer="yes" disabled={isBusy} onClick={() => void begin()}>
          Sign in
        </button>
      ) : (
        <OutsideLink address={address} />
      )}
      <button
        type="button"
        data-answer="no"
        disabled={isBusy}
        onClick={() => void attempt(call("web.leaveSignIn", { sessionId, server }))}
      >
        Not now
      </button>
      {address !== undefined && <p class="hint">This card goes away when you are signed in.</p>}
    </div>
  );
}

/** Another program runs the session and signs in by itself. */
function HostSignIn({ isBusy, onAnswer }: AnswerProps): JSX.Element {
  return (
    <div class="answers">
      <p class="hint">The program that runs this session signs in.</p>
      <button
        type="button"
        class="danger"
        data-answer="no"
        disabled={isBusy}
        onClick={() => onAnswer("session.mcp.oauth.handlePendingRequest", { result: { kind: "cancelled" } })}
      >
        Continue without signing in
      </button>
    </div>
  );
}
