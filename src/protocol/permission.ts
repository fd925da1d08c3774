/** The access that a call requests, in the terms of the permission rules and of the wire's permission requests. */
import type { Json } from "../lib/json.ts";

export type Access =
  | { readonly kind: "read"; readonly path: string; readonly intention?: string }
  | {
      readonly kind: "write";
      readonly path: string;
      /** The path as the caller wrote it, if links lead elsewhere. */
      readonly written?: string;
      readonly intention: string;
      /** The change as a unified diff, bounded in size. */
      readonly diff: string;
    }
  | {
      readonly kind: "shell";
      readonly command: string;
      readonly cwd: string;
      readonly intention: string;
      /** The running shell that receives it. Its directory may have changed. */
      readonly shellId?: string;
      /** It asks to leave the sandbox. */
      readonly unsandboxed?: boolean;
    }
  | { readonly kind: "url"; readonly url: string; readonly intention: string }
  /** DetachableTasks the sandbox. Requested beside the command itself; only the user can approve it. */
  | { readonly kind: "sandbox-off"; readonly command: string; readonly intention: string }
  | {
      readonly kind: "mcp";
      readonly serverName: string;
      readonly toolName: string;
      readonly toolTitle: string;
      /** The server's full description; the model receives less of it. */
      readonly toolDescription?: string;
      readonly args?: Json;
      /**
       * True only for known read-only access, such as reading a resource. A server's hint about its own tool does not
       * count.
       */
      readonly readOnly: boolean;
    }
  /** A model call that a server requests. `args` holds its prompt, bounded, for the user to review. */
  | { readonly kind: "mcp-sampling"; readonly serverName: string; readonly args?: Json }
  | {
      readonly kind: "memory";
      readonly action: "store" | "vote";
      readonly fact: string;
      readonly subject?: string;
      readonly citations?: string;
      /** The scope of a stored fact. */
      readonly scope?: "repository" | "user";
      readonly direction?: "upvote" | "downvote";
      readonly reason?: string;
    }
  | {
      readonly kind: "custom-tool";
      readonly toolName: string;
      readonly toolDescription: string;
      readonly args?: Json;
    }
  /** A hook wants the user to review the call. */
  | { readonly kind: "hook"; readonly toolName: string; readonly toolArgs?: Json; readonly hookMessage?: string }
  /** An extension requests capabilities of a client that a user started: see `server/extensions/extension-join.ts`. */
  | {
      readonly kind: "extension-permission-access";
      readonly extensionName: string;
      readonly capabilities: readonly string[];
    }
  /** An extension requests environment variables that it was not given. Their values are not included. */
  | {
      readonly kind: "extension-env-access";
      readonly extensionName: string;
      readonly environmentVariables: readonly string[];
    }
  /** Starting another agent. */
  | { readonly kind: "agent"; readonly agentName: string; readonly intention: string };

/** Names of the built-in tools that write files; a client may replace one under the same name. */
export const fileEditTools: ReadonlySet<string> = new Set(["create", "edit", "apply_patch"]);
