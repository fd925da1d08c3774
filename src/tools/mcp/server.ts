/**
 * Tools of MCP servers. Here are the words the parts of this folder share: what a configured server is, and what a tool
 * of it is before it becomes a `Tool`. Everything a server says is hostile until it has been bounded.
 */

/** Where an entry was found; the earlier win over the later. */
export type McpScope = "flag" | "program" | "plugin" | "project" | "user" | "builtin";

export interface McpStdioTransport {
  readonly type: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** All that a project's server can reach; none if left out. A person's own is not limited. */
  readonly hosts?: readonly string[];
}

export interface McpOAuthSettings {
  readonly clientId?: string;
  /** Where the client describes itself; used as its id by servers that accept that, instead of a registration. */
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

/** One entry, resolved: variables are filled in, defaults are set. */
export interface McpServerConfig {
  readonly name: string;
  readonly scope: McpScope;
  /** A file, or the flag that brought it. */
  readonly source: string;
  readonly transport: McpStdioTransport | McpHttpTransport;
  /** Names as the server gives them; `*` means all. */
  readonly tools: readonly string[];
  /** Bounds connecting, and each call between signs of progress. */
  readonly timeoutMs: number;
  readonly deferTools?: "auto" | "never" | "always";
  readonly filterMapping?: McpFilterMapping;
  readonly pluginName?: string;
  /** Set by a person's own words only; whoever reads a project's file leaves it out. */
  readonly sandbox?: "off";
}

export const DEFAULT_MCP_TIMEOUT_MS = 30_000;

/** What a server claims about a tool; shown to people, never used to permit. */
export interface McpToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** What a client can show of a tool, and for whom the tool is. */
export interface McpToolInterface {
  readonly resourceUri?: string;
  readonly visibility?: ("model" | "app")[];
}

/** One tool as its server lists it, bounded and checked for shape. */
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
