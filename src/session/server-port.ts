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
}

interface ServerSeat {
  readonly config: {
    readonly name: string;
    readonly scope: string;
    readonly pluginName?: string;
    readonly transport: { readonly type: string };
  };
  state(): { readonly status: string; readonly error?: string };
  /** Connects where it must. */
  definitions(signal: AbortSignal): Promise<readonly { readonly name: string; readonly description: string }[]>;
  /** Ends the connection and forgets its failures and its token; the next use connects anew. */
  reconnect(): Promise<void>;
}
