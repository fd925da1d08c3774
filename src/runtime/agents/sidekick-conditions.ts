/** Conditions under which built-in sidekicks start, and their initial notes. */
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import type { SessionBoard } from "../knowledge/session-board.ts";
import type { SessionMemory } from "../knowledge/session-memory.ts";
import type { SidekickCondition } from "./sidekicks.ts";

interface ConditionInputs {
  readonly board: SessionBoard | undefined;
  readonly memory: SessionMemory | undefined;
  readonly cwd: string;
  readonly gitRoot: string | undefined;
}

export function sidekickConditions({
  board,
  memory,
  cwd,
  gitRoot,
}: ConditionInputs): ReadonlyMap<string, SidekickCondition> {
  return new Map<string, SidekickCondition>([
    [
      "subconscious-agent",
      async () => {
        const table = await board?.readingPort.table();
        return table === undefined ? undefined : { notes: [table] };
      },
    ],
    [
      "github-context",
      async () => {
        const isKnown = memory !== undefined && (memory.count > 0 || memory.section !== "");
        return isKnown ? { notes: gitRoot === undefined ? [] : await latestCommits(cwd) } : undefined;
      },
    ],
  ]);
}

const COMMITS = 30;
const MAX_BYTES = 6_000;
const TIMEOUT_MS = 2_000;

/** Returns nothing if git does not answer in time. */
async function latestCommits(cwd: string): Promise<readonly string[]> {
  const { runGit } = await import("../../lib/node/git.ts");
  const args = ["log", `--max-count=${COMMITS}`, "--date=short", "--format=%h %ad %an: %s"];
  const { stdout } = await runGit(args, { cwd, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES }).catch(() => ({
    stdout: "",
  }));
  return stdout.trim() === "" ? [] : [wrapInTag("latest_commits", {}, quoted(stdout.trim()))];
}
