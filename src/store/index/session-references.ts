/** Finds pull requests, issues and commits in the output of commands and in the arguments of GitHub MCP tools. */

export interface Reference {
  readonly type: "pr" | "issue" | "commit";
  /** `owner/name#12`, or the commit id as printed. */
  readonly value: string;
}

interface Call {
  readonly toolName: string;
  /** The MCP server; empty for a built-in tool. */
  readonly server: string;
  readonly given: unknown;
  readonly output: string;
}

/** Only this much of an output is searched. */
const MAX_CHARACTERS = 100_000;
const MAX_FOUND = 50;
const ADDRESS = /https:\/\/[\w.-]+\/([\w.-]+\/[\w.-]+)\/(?:(pull|issues)\/(\d{1,9})|commit\/([0-9a-f]{7,40}))\b/g;
/** Matches the output of `git commit`: `[main 1a2b3c4] message`. */
const COMMITTED = /^\[[^\]\n]{1,200} ([0-9a-f]{7,40})\] /gm;
const COMMANDS = new Set(["bash", "read_bash", "write_bash"]);

export function referencesIn(call: Call): Reference[] {
  if (COMMANDS.has(call.toolName)) return inOutput(call.output.slice(0, MAX_CHARACTERS));
  return /github/i.test(call.server) ? inArguments(call.given) : [];
}

function inOutput(text: string): Reference[] {
  const found: Reference[] = [];
  for (const [, repository = "", kind, number, commit] of text.matchAll(ADDRESS)) {
    if (commit !== undefined) found.push({ type: "commit", value: commit });
    else found.push({ type: kind === "pull" ? "pr" : "issue", value: `${repository}#${number}` });
    if (found.length >= MAX_FOUND) return found;
  }
  for (const [, commit = ""] of text.matchAll(COMMITTED)) found.push({ type: "commit", value: commit });
  return found.slice(0, MAX_FOUND);
}

function inArguments(given: unknown): Reference[] {
  if (typeof given !== "object" || given === null) return [];
  const all = given as Record<string, unknown>;
  const { owner, repo } = all;
  const numbered = (type: "pr" | "issue", names: readonly string[]): Reference[] => {
    const number = names.map((name) => all[name]).find((value) => Number.isSafeInteger(Number(value ?? Number.NaN)));
    return number === undefined
      ? []
      : [{ type, value: `${String(owner ?? "")}/${String(repo ?? "")}#${String(number)}` }];
  };
  return [
    ...numbered("pr", ["pullNumber", "pull_number"]),
    ...numbered("issue", ["issueNumber", "issue_number"]),
    ...(typeof all.sha === "string" && /^[0-9a-f]{7,40}$/.test(all.sha)
      ? [{ type: "commit" as const, value: all.sha }]
      : []),
  ];
}
