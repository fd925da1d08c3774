import type { Json } from "../lib/json.ts";

/** The MCP servers of a session, as surfaces see them. */
export interface SessionMcpPort {
  readonly servers: readonly ServerEntry[];
  /** Resolves when `servers` is complete. Connects nothing. */
  opened(): Promise<void>;
  /** Connects servers whose tools are unknown. Resolves when they are connected or their time is up. */
  ready(signal: AbortSignal): Promise<void>;
  setEnabled(name: string, enabled: boolean): Promise<boolean>;
  /** Allows asking again for a token that a client did not provide. Applies to all servers unless one is named. */
  askAgain(serverName?: string): void;
  readonly apps: AppsPort;
}

/** For clients that show apps of servers. Errors are `TroupeError`s. */
interface AppsPort {
  /** Returns the tools that a server's apps may call. */
  tools(serverName: string, signal: AbortSignal): Promise<readonly object[]>;
  /** Calls a tool for an app, as if the user had clicked in it. Rules and hooks that deny the tool apply. */
  call(call: AppCall, signal: AbortSignal): Promise<object>;
  /** Returns displayable content of a server, such as an app's page. */
  read(serverName: string, uri: string, signal: AbortSignal): Promise<readonly object[]>;
}

export interface AppCall {
  readonly serverName: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, Json>>;
}

interface ServerResource {
  readonly server: string;
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly mimeType?: string;
}

interface ServerTemplate {
  readonly uriTemplate: string;
}

interface ServerProbe {
  readonly statusCode: number;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly hadToken: boolean;
  readonly challenge?: { readonly error?: string };
}

interface ServerEntry {
  readonly config: {
    readonly name: string;
    readonly scope: string;
    readonly pluginName?: string;
    readonly transport: { readonly type: string };
  };
  state(): { readonly status: string; readonly error?: string };
  /** Connects if necessary. Returns all pages of the server, up to a limit. */
  listResources(signal: AbortSignal): Promise<readonly ServerResource[]>;
  /** Connects if necessary. Returns all pages of the server, up to a limit. */
  listTemplates(signal: AbortSignal): Promise<readonly (Omit<ServerResource, "server" | "uri"> & ServerTemplate)[]>;
  /** Asks a remote server once whether it requires a sign-in. Opens no connection and requests no token. */
  probe(signal: AbortSignal): Promise<ServerProbe>;
  /** Returns the text of a resource. `leftOut` names parts that are not text or too large. */
  readResource(
    uri: string,
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly leftOut: readonly string[] }>;
  /** Connects if necessary. */
  definitions(signal: AbortSignal): Promise<readonly ListedTool[]>;
  /** Closes the connection and forgets its failures and its token. The next use connects again. */
  reconnect(): Promise<void>;
}

interface ListedTool {
  readonly name: string;
  readonly description: string;
  /** Its displayable resource, and who may use the tool. */
  readonly ui?: { readonly resourceUri?: string; readonly visibility?: readonly ("model" | "app")[] };
}
