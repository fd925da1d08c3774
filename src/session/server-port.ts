import type { Json } from "../lib/json.ts";

/** The MCP servers of a session, as far as surfaces look at them. */
export interface ServerPort {
  readonly servers: readonly ServerSeat[];
  /** Nothing is connected by this; resolves when `servers` has them all. */
  opened(): Promise<void>;
  /** Connects those whose tools nobody knows; resolves when they are there or their time is up. */
  ready(signal: AbortSignal): Promise<void>;
  setEnabled(name: string, enabled: boolean): Promise<boolean>;
  /** Who was asked for a token of the server and brought none may be asked again. All servers unless named. */
  askAgain(serverName?: string): void;
  readonly apps: AppsPort;
}

/** For clients that show apps of servers. What goes wrong is a `TroupeError`. */
interface AppsPort {
  /** The tools of a server that its apps may call. */
  tools(serverName: string, signal: AbortSignal): Promise<readonly object[]>;
  /** Calls one for an app, as a person does who clicks in it; a rule or a hook that denies the tool holds. */
  call(call: AppCall, signal: AbortSignal): Promise<object>;
  /** What a server gives to be shown, such as the page of an app. */
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

interface ServerSeat {
  readonly config: {
    readonly name: string;
    readonly scope: string;
    readonly pluginName?: string;
    readonly transport: { readonly type: string };
  };
  state(): { readonly status: string; readonly error?: string };
  /** Connects where it must. All pages of the server, up to a limit. */
  listResources(signal: AbortSignal): Promise<readonly ServerResource[]>;
  /** Connects where it must. All pages of the server, up to a limit. */
  listTemplates(signal: AbortSignal): Promise<readonly (Omit<ServerResource, "server" | "uri"> & ServerTemplate)[]>;
  /** Asks a remote server once whether it wants a sign-in. Connects nothing, and asks nobody for a token. */
  probe(signal: AbortSignal): Promise<ServerProbe>;
  /** The text of a resource; `leftOut` names parts that are no text or too large. */
  readResource(
    uri: string,
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly leftOut: readonly string[] }>;
  /** Connects where it must. */
  definitions(signal: AbortSignal): Promise<readonly ListedTool[]>;
  /** Ends the connection and forgets its failures and its token; the next use connects anew. */
  reconnect(): Promise<void>;
}

interface ListedTool {
  readonly name: string;
  readonly description: string;
  /** What can be shown of it, and for whom it is. */
  readonly ui?: { readonly resourceUri?: string; readonly visibility?: readonly ("model" | "app")[] };
}
