/**
 * The permission engine: what may be attempted. `rules.ts` is the syntax people write, `shell/analyse.ts` says what a
 * command would do, `decide.ts` is the one pure decision, `grants.ts` remembers answers, `request.ts` is what a person
 * is shown. Nothing here is a boundary; the sandbox is.
 */
import type { Json } from "../lib/json.ts";
import type { Access } from "../protocol/permission.ts";

/** Everything a decision can be asked for: what built-in tools touch, and calls into foreign tools. */
export type GuardedAccess = Access | McpAccess | MemoryAccess | CustomToolAccess;

interface McpAccess {
  readonly kind: "mcp";
  readonly serverName: string;
  readonly toolName: string;
  readonly toolTitle: string;
  readonly args?: Json;
  /** What the server says of itself; shown, never used to decide. */
  readonly readOnly: boolean;
}

interface MemoryAccess {
  readonly kind: "memory";
  readonly action: "store" | "vote";
  readonly fact: string;
  readonly subject?: string;
  readonly citations?: string;
  readonly direction?: "upvote" | "downvote";
  readonly reason?: string;
}

interface CustomToolAccess {
  readonly kind: "custom-tool";
  readonly toolName: string;
  readonly toolDescription: string;
  readonly args?: Json;
}
