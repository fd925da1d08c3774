/**
 * Tools of MCP servers: this folder connects to servers and wraps their tools. This file has the shared types: a
 * configured server, and a tool before it becomes a `Tool`. All data of a server is untrusted until it is bounded.
 */

/** Whether a search must find a tool before it is offered. `auto`: if the session has very many tools. */
export type Deferral = "auto" | "never" | "always";

/** The source of an entry; earlier ones win. */
export type McpScope = "flag" | "program" | "plugin" | "project" | "user" | "builtin";

export interface McpStdioTransport {
  readonly type: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The only hosts a project's server can reach (default: none). Servers of the user are not limited. */
  readonly hosts?: readonly string[];
}

export interface McpOAuthSettings {
  readonly clientId?: string;
  /**
   * Address of the client's metadata document. Servers that accept it use it as the client id instead of a
   * registration.
   */
  readonly clientMetadataUrl?: string;
  readonly publicClient?: boolean;
  readonly grantType?: "authorization_code" | "client_credentials";
}

export interface McpHttpTransport {
  readonly type: "http" | "sse";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly oauth?: McpOAuthSettings;
}

export type McpFilterMapping = "none" | "markdown" | "hidden_characters";

/** One resolved entry: variables are expanded, defaults are set. */
export interface McpServerConfig {
  readonly name: string;
  readonly scope: McpScope;
  /** A file, or the flag that named it. */
  readonly source: string;
  readonly transport: McpStdioTransport | McpHttpTransport;
  /** Names from the server; `*` means all. */
  readonly tools: readonly string[];
  /** Limits connecting, and the time between progress messages of a call. */
  readonly timeoutMs: number;
  readonly deferTools?: Deferral;
  readonly filterMapping?: McpFilterMapping;
  readonly pluginName?: string;
  /** Only the user's own configuration may set it; ignored in project files. */
  readonly sandbox?: "off";
}

export const DEFAULT_MCP_TIMEOUT_MS = 30_000;

/** Claims of a server about a tool; shown to the user, never used for permissions. */
export interface McpToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** The UI resource of a tool, and the audience of the tool. */
export interface McpToolInterface {
  readonly resourceUri?: string;
  readonly visibility?: ("model" | "app")[];
}

/** One tool as its server lists it, bounded and validated. */
export interface McpToolDefinition {
  readonly server: string;
  /** The server's own name for it. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: object;
  readonly outputSchema?: object;
  readonly annotations?: McpToolAnnotations;
  /** Whether calls may or must be made as tasks (2025-11-25). */
  readonly taskSupport?: "optional" | "required";
  readonly ui?: McpToolInterface;
}

export type McpStatus = "connected" | "failed" | "needs-auth" | "pending" | "disabled" | "stopped" | "not_configured";
