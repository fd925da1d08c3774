/**
 * The sessions that an MCP client runs through `troupe mcp serve`. It starts, continues, watches and stops them by id.
 */

import { realpathSync } from "node:fs";
import { isAbsolute, resolve, sep } from "node:path";
import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Client } from "../../sdk/client.ts";
import type { ClientSession } from "../../sdk/session.ts";

export interface ServedOptions {
  readonly client: Client;
  /** The working directory of sessions that name none. */
  readonly cwd: string;
  /** Folders in which a session may work; "all" for any. */
  readonly folders: readonly string[] | "all";
  readonly maxOpen?: number;
}

export interface StartRequest {
  readonly prompt: string;
  readonly cwd?: string | undefined;
  readonly model?: string | undefined;
  readonly agent?: string | undefined;
  readonly name?: string | undefined;
}

/** A session as its client sees it. */
export interface ServedSessionView {
  readonly sessionId: string;
  readonly status: "working" | "idle" | "failed";
  readonly cwd: string;
  readonly name?: string;
  /** The main agent's last message since the last prompt. */
  readonly answer?: string;
  readonly error?: string;
  /** The last tool that was started, while the session is working. */
  readonly activity?: string;
  /** Tool calls that were denied since the last prompt. */
  readonly denied?: string[];
}

interface Served {
  readonly session: ClientSession;
  readonly cwd: string;
  readonly name: string | undefined;
  status: ServedSessionView["status"];
  answer: string | undefined;
  error: string | undefined;
  activity: string | undefined;
  denied: string[];
  readonly waiting: Set<() => void>;
}

const MAX_OPEN = 32;
const MAX_ANSWER_CHARACTERS = 256 * 1024;
const MAX_DENIED = 20;

export class ServedSessions {
  readonly #options: ServedOptions;
  readonly #sessions = new Map<string, Served>();
  /** Number of sessions that are being opened. They count for the limit. */
  #opening = 0;

  constructor(options: ServedOptions) {
    this.#options = options;
  }

  /** Throws a `TroupeError` if the folder is not allowed, the limit is reached or the session cannot be opened. */
  async start({ prompt, cwd: wanted, model, agent, name }: StartRequest): Promise<ServedSessionView> {
    const { client } = this.#options;
    const cwd = this.#folder(wanted);
    const served = await this.#open({ cwd, name }, (config) =>
      client.createSession({
        ...config,
        workingDirectory: cwd,
        ...defined({ model, agent }),
      }),
    );
    try {
      await this.#prompt(served, { prompt });
    } catch (error) {
      // The caller has no id to close it by.
      await this.stop(served.session.sessionId, { close: true }).catch(() => undefined);
      throw error;
    }
    return viewOf(served);
  }

  async send(sessionId: string, message: string, mode: "enqueue" | "immediate"): Promise<ServedSessionView> {
    const served = this.#find(sessionId);
    await this.#prompt(served, { prompt: message, mode });
    return viewOf(served);
  }

  view(sessionId: string): ServedSessionView {
    return viewOf(this.#find(sessionId));
  }

  list(): ServedSessionView[] {
    return [...this.#sessions.values()].map((served) => {
      const { answer: _, ...view } = viewOf(served);
      return view;
    });
  }

  /** Resolves when the session stops working or the time is over. A timeout stops nothing. */
  async wait(
    sessionId: string,
    { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  ): Promise<ServedSessionView> {
    const served = this.#find(sessionId);
    const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    while (served.status === "working" && !ended.aborted) {
      await new Promise<void>((done) => {
        const stop = (): void => {
          served.waiting.delete(stop);
          ended.removeEventListener("abort", stop);
          done();
        };
        served.waiting.add(stop);
        ended.addEventListener("abort", stop, { once: true });
      });
    }
    return viewOf(served);
  }

  /** Stops the current work. With `close`, also closes the session, which stays on disk. */
  async stop(sessionId: string, { close }: { close: boolean }): Promise<ServedSessionView> {
    const served = this.#find(sessionId);
    if (served.status === "working") await served.session.abort();
    if (close) {
      this.#sessions.delete(sessionId);
      await served.session.disconnect();
      change(served, "idle");
    }
    return viewOf(served);
  }

  async #open(
    { cwd, name }: { cwd: string; name: string | undefined },
    make: (config: Parameters<Client["createSession"]>[0] & object) => Promise<ClientSession>,
  ): Promise<Served> {
    const { maxOpen = MAX_OPEN } = this.#options;
    if (this.#sessions.size + this.#opening >= maxOpen)
      throw new TroupeError("limit", `${maxOpen} sessions are open. Close one with stop_session and close: true.`);
    this.#opening++;
    try {
      const session = await make({
        enableConfigDiscovery: true,
        clientName: "mcp",
        memory: { enabled: true },
        // No user can be asked, so calls that the command's flags do not allow are denied, as in prompt mode.
        onPermissionRequest: () => ({ kind: "user-not-available" }),
      });
      const facts = { answer: undefined, error: undefined, activity: undefined, denied: [] };
      const served: Served = { session, cwd, name, status: "idle", ...facts, waiting: new Set() };
      session.on((event) => onEvent(served, event));
      this.#sessions.set(session.sessionId, served);
      return served;
    } finally {
      this.#opening--;
    }
  }

  async #prompt(served: Served, message: { prompt: string; mode?: "enqueue" | "immediate" }): Promise<void> {
    const wasWorking = served.status === "working";
    Object.assign(served, { answer: undefined, error: undefined, denied: [] });
    change(served, "working");
    try {
      await served.session.send(message);
    } catch (error) {
      if (!wasWorking) change(served, "idle");
      throw error;
    }
  }

  #find(sessionId: string): Served {
    const served = this.#sessions.get(sessionId);
    if (served) return served;
    throw new TroupeError(
      "usage",
      `There is no session ${JSON.stringify(sessionId)}. list_sessions names those that are open.`,
    );
  }

  /** Returns the requested folder if the command allows it. The caller may be more restricted than this program. */
  #folder(wanted: string | undefined): string {
    const { cwd, folders } = this.#options;
    const path = wanted === undefined ? cwd : isAbsolute(wanted) ? wanted : resolve(cwd, wanted);
    const real = realFolder(path);
    const isAllowed = folders === "all" || [cwd, ...folders].some((folder) => isInside(real, realFolder(folder)));
    if (isAllowed) return real;
    throw new TroupeError("usage", `${path} is outside the folders of this server. Start it with --add-dir ${path}.`);
  }
}

function onEvent(served: Served, event: SessionEvent): void {
  if (event.type === "troupe.permission" && event.data.decision === "denied" && served.denied.length < MAX_DENIED)
    served.denied.push(`${event.data.toolName}: ${event.data.reason}`);
  if (event.agentId !== undefined) return;
  if (event.type === "assistant.message" && event.data.content.trim() !== "") served.answer = event.data.content;
  if (event.type === "tool.execution_start") served.activity = event.data.toolName;
  if (event.type === "session.error") served.error = event.data.message;
  if (event.type === "session.idle") change(served, served.error === undefined ? "idle" : "failed");
}

function change(served: Served, status: Served["status"]): void {
  served.status = status;
  if (status === "working") return;
  served.activity = undefined;
  for (const done of [...served.waiting]) done();
}

function viewOf({ session, status, cwd, name, answer, error, activity, denied }: Served): ServedSessionView {
  return {
    sessionId: session.sessionId,
    status,
    cwd,
    ...defined({ name }),
    ...(answer !== undefined && { answer: clip(answer, MAX_ANSWER_CHARACTERS) }),
    ...defined({ error, activity }),
    ...(denied.length > 0 && { denied: [...denied] }),
  };
}

const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);

function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new TroupeError("usage", `There is no folder ${path}.`, { cause });
  }
}
