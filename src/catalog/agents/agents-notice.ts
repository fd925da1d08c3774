/** Something people should know about an agent; nothing stops because of it. */
export interface AgentNotice {
  readonly kind: "broken" | "refused" | "field" | "clash" | "untrusted" | "changed" | "limit" | "remote";
  /** A file, or whoever else brought the agent. */
  readonly path: string;
  readonly message: string;
}

export type NoteAgent = (notice: AgentNotice) => void;

const MAX_NOTICES = 100;

/** Holds so many, and counts the rest. */
export function agentNotices(): { readonly note: NoteAgent; all(): readonly AgentNotice[] } {
  const notices: AgentNotice[] = [];
  let left = 0;
  return {
    note: (notice) => void (notices.length < MAX_NOTICES ? notices.push(notice) : left++),
    all: () =>
      left === 0
        ? notices
        : [...notices, { kind: "limit", path: "agents", message: `${left} more remarks about agents are left out.` }],
  };
}
