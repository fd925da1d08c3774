/** The field for messages. Drafts stay while the page is open, one per session and agent. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";

export interface ComposerProps {
  /** Drafts are kept under this name. */
  readonly draft: string;
  readonly label: string;
  readonly isBusy: boolean;
  /** Resolves with false when it was not sent: the text stays. */
  onSend(text: string, how: "queue" | "steer"): Promise<boolean>;
  readonly canSteer: boolean;
}

export function Composer({ draft, label, isBusy, onSend, canSteer }: ComposerProps): JSX.Element {
  const [text, setText] = useState(() => sessionStorage.getItem(`draft ${draft}`) ?? "");
  const [isSending, setSending] = useState(false);
  const change = (value: string): void => {
    setText(value);
    sessionStorage.setItem(`draft ${draft}`, value);
  };
  const send = async (how: "queue" | "steer"): Promise<void> => {
    if (text.trim() === "" || isSending) return;
    setSending(true);
    if (await onSend(text, how)) change("");
    setSending(false);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send(isBusy && canSteer ? "steer" : "queue");
      }}
    >
      <textarea
        id="composer"
        aria-label={label}
        placeholder={`${label} (Enter sends, Shift+Enter: new line)`}
        rows={2}
        value={text}
        onInput={({ currentTarget }) => change(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void send(isBusy && canSteer ? "steer" : "queue");
        }}
      />
      <button type="submit" class="primary" disabled={isSending || text.trim() === ""}>
        {isBusy && canSteer ? "Steer" : "Send"}
      </button>
      {isBusy && canSteer && (
        <button type="button" disabled={isSending || text.trim() === ""} onClick={() => void send("queue")}>
          Queue
        </button>
      )}
    </form>
  );
}
