/** What a call wants to do, in the words of the permission rules and of the wire's permission requests. */
import type { Json } from "../lib/json.ts";

export type Access =
  | { readonly kind: "read"; readonly path: string; readonly intention?: string }
  | {
      readonly kind: "write";
      readonly path: string;
      /** As the caller named it, where links lead elsewhere. */
      readonly written?: string;
      readonly intention: string;
      /** What would change, as a unified diff, bounded. */
      readonly diff: string;
    }
  | {
      readonly kind: "shell";
      readonly command: string;
      readonly cwd: string;
      readonly intention: string;
      /** The running shell it is given to; that may be in another folder by now. */
      readonly shellId?: string;
      /** It asks to leave the sandbox. */
      readonly unsandboxed?: boolean;
    }
  | { readonly kind: "url"; readonly url: string; readonly intention: string }
  /** Leaving the sandbox: asked for beside the command itself, and only a person can say yes. */
  | { readonly kind: "sandbox-off"; readonly command: string; readonly intention: string }
  | {
      readonly kind: "mcp";
      readonly serverName: string;
      readonly toolName: string;
      readonly toolTitle: string;
      /** The server's words, whole: the model gets less of them. */
      readonly toolDescription?: string;
      readonly args?: Json;
      /** Known to change nothing, as reading a resource is. The hint of a server about its own tool does not count. */
      readonly readOnly: boolean;
    }
  /** A model call that a server asks for; `args` holds its prompt, bounded, for the user to review. */
  | { readonly kind: "mcp-sampling"; readonly serverName: string; readonly args?: Json }
  | {
      readonly kind: "memory";
      readonly action: "store" | "vote";
      readonly fact: string;
      readonly subject?: string;
      readonly citations?: string;
      readonly direction?: "upvote" | "downvote";
      readonly reason?: string;
    }
  | {
      readonly kind: "custom-tool";
      readonly toolName: string;
      readonly toolDescription: string;
      readonly args?: Json;
    }
  /** A hook wants a person to look at the call. */
  | { readonly kind: "hook"; readonly toolName: string; readonly toolArgs?: Json; readonly hookMessage?: string }
  /** An extension wants to do what only a client that a person started may: see `server/extension-join.ts`. */
  | {
      readonly kind: "extension-permission-access";
      readonly extensionName: string;
      readonly capabilities: readonly string[];
    }
  /** An extension asks for variables that it was not given. Their values are nowhere in this. */
  | {
      readonly kind: "extension-env-access";
      readonly extensionName: string;
      readonly environmentVariables: readonly string[];
    }
  /** Starting another agent. */
  | { readonly kind: "agent"; readonly agentName: string; readonly intention: string };
