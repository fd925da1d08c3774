/**
 * MCP servers of live sessions that need a sign-in, and the sign-in itself: the page gets the address, the browser comes
 * back to a port of this machine, and the session connects again.
 */
import { fenceText } from "../lib/text.ts";
import { visible, visibleLine } from "../lib/visible.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { openMcpAdministration } from "../runtime/mcp/mcp-admin.ts";
import type { AttentionItem } from "../view/view.ts";
import type { SignInBegun } from "./api.ts";

export interface SignInParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder in which the session works. */
  folderOf(sessionId: string): Promise<string>;
  /** Makes the session connect to the server again. */
  reconnect(sessionId: string, server: string): Promise<unknown>;
  onChange(sessionId: string): void;
}

interface Needed {
  /** Since when, in milliseconds. */
  readonly at: number;
  /** Why the last sign-in failed. */
  readonly problem?: string;
}

const MAX_SERVERS = 50;

export class SignIns {
  readonly #parts: SignInParts;
  /** Servers that need a sign-in, by session. */
  readonly #needed = new Map<string, Map<string, Needed>>();
  /** Sign-ins under way. A second one for the same server ends the first. */
  readonly #running = new Map<string, AbortController>();

  constructor(parts: SignInParts) {
    this.#parts = parts;
  }

  onEvent(sessionId: string, event: SessionEvent): void {
    const at = Date.parse(event.timestamp);
    if (event.type === "session.mcp_servers_loaded") {
      for (const { name, status } of event.data.servers) this.#note(sessionId, { name, status, at });
    }
    if (event.type === "session.mcp_server_status_changed") {
      const { serverName: name, status } = event.data;
      this.#note(sessionId, { name, status, at });
    }
  }

  forget(sessionId: string): void {
    this.#needed.delete(sessionId);
  }

  /** The open sign-ins of a session, as requests to a person. */
  of(sessionId: string): readonly AttentionItem[] {
    return [...(this.#needed.get(sessionId) ?? [])].map(([name, { at, problem }]) => ({
      id: `sign-in ${name}`,
      kind: "sign_in",
      title: `Sign in to ${visibleLine(name)}`,
      at,
      text: [
        `This MCP server wants you to sign in. Its tools cannot be used before:\n\n${fenceText(visible(name))}`,
        ...(problem === undefined ? [] : [`The last sign-in failed:\n\n${fenceText(visible(problem))}`]),
      ].join("\n\n"),
      agentId: undefined,
      path: [],
      toolCallId: undefined,
      canAllowForSession: false,
      choices: [],
      allowFreeform: false,
      request: undefined,
      isAnswered: false,
      isLive: true,
    }));
  }

  /** Begins a sign-in. Resolves with the address to open, or without one when nothing is left to do. */
  async begin(sessionId: string, server: string): Promise<SignInBegun> {
    const key = `${sessionId} ${server}`;
    this.#running.get(key)?.abort(new TroupeError("failed", "The sign-in was started again."));
    const stop = new AbortController();
    this.#running.set(key, stop);
    const { environment, folderOf } = this.#parts;
    const { administration, close } = await openMcpAdministration({ cwd: await folderOf(sessionId), environment });
    // TROUPE_MCP_CLIENT_SECRET belongs to the one server of a `troupe mcp login`, and this may be another.
    return new Promise((resolve, reject) => {
      administration
        .login(server, {
          signal: stop.signal,
          onAuthorize: (url) => resolve({ address: url.href }),
        })
        .then(async () => {
          await this.#parts.reconnect(sessionId, server);
          resolve({});
        })
        .catch((error: unknown) => {
          if (!stop.signal.aborted) this.#noteFailure(sessionId, server, error);
          reject(error);
        })
        .finally(() => {
          if (this.#running.get(key) === stop) this.#running.delete(key);
          return close();
        });
    });
  }

  /** A person does not want to sign in now. */
  leave(sessionId: string, server: string): void {
    this.#running.get(`${sessionId} ${server}`)?.abort(new TroupeError("failed", "The sign-in was abandoned."));
    this.#note(sessionId, { name: server, status: "left", at: 0 });
  }

  close(): void {
    for (const stop of this.#running.values()) stop.abort(new TroupeError("failed", "The dashboard was closed."));
  }

  #note(sessionId: string, { name, status, at }: { name: string; status: string; at: number }): void {
    const servers = this.#needed.get(sessionId) ?? new Map<string, Needed>();
    const isNeeded = status === "needs-auth";
    if (servers.has(name) === isNeeded || (isNeeded && servers.size >= MAX_SERVERS)) return;
    if (isNeeded) servers.set(name, { at });
    else servers.delete(name);
    this.#needed.set(sessionId, servers);
    this.#parts.onChange(sessionId);
  }

  #noteFailure(sessionId: string, server: string, error: unknown): void {
    const known = this.#needed.get(sessionId)?.get(server);
    if (!known) return;
    const problem = error instanceof Error ? error.message : String(error);
    this.#needed.get(sessionId)?.set(server, { ...known, problem });
    this.#parts.onChange(sessionId);
  }
}
