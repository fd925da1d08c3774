/** A notice about an agent, for the user. It stops nothing. */
export interface AgentNotice {
  readonly kind: "broken" | "refused" | "field" | "clash" | "untrusted" | "changed" | "limit" | "remote";
  /** A file, or another source of the agent. */
  readonly path: string;
  readonly message: string;
}

export type NoteAgent = (notice: AgentNotice) => void;

const MAX_NOTICES = 100;

/** Collects up to `MAX_NOTICES` notices and counts the rest. */
export function agentNotices(): { readonly note: NoteAgent; all(): readonly AgentNotice[] } {
  const notices: AgentNotice[] = [];
  let left = 0;
  return {
    note: (notice) => void (notices.length < MAX_NOTICES ? notices.push(notice) : left++),
    all: () =>
      left === 0
        ? notices
        : [...notices, { kind: "limit", path: "agents", message: `${left} more notices about agents are not shown.` }],
  };
}
