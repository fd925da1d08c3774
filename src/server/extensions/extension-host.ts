/**
 * The extensions of one session. Each is started, joins as a client, and ends with the session. The state of each is
 * announced, and a failure does not affect the others.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Deferred, deferred } from "../../lib/deferred.ts";
import { quotedLine } from "../../lib/quoting.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ExtensionPort, ExtensionProfile } from "../../session/session-options.ts";
import type { ClientConnection } from "../connection.ts";

type Found = Awaited<ReturnType<ExtensionPort["find"]>>[number];
type Program = Awaited<ReturnType<ExtensionPort["start"]>>;
type Status = "running" | "disabled" | "failed" | "starting";

export interface ExtensionEntry {
  readonly id: string;
  readonly name: string;
  readonly source: Found["source"];
  readonly status: Status;
  readonly pid?: number;
}

export interface ExtensionHostPorts {
  /** Returns the port of the current session, or undefined if extensions were not requested. */
  port(): ExtensionPort | undefined;
  /** Accepts its process as a client. */
  accept(program: Pick<Program, "fromExtension" | "toExtension">, extension: Found): ClientConnection;
  /** Returns how a client wants it started, if a client decides that. */
  profile(extension: Found): Promise<ExtensionProfile | undefined>;
  /** Called with all extensions in their current state. */
  onChange(extensions: readonly ExtensionEntry[]): void;
  warn(message: string): void;
}

interface Entry {
  readonly found: Found;
  status: Status;
  program?: Program;
  connection?: ClientConnection;
  /** Resolves when it has joined or failed to. */
  settled: Deferred<void>;
  joining?: NodeJS.Timeout;
}

/** Timeout from its start until it identifies itself. */
const JOIN_MS = 30_000;
/** Maximum time a message waits for extensions that are about to join. */
const PATIENCE_MS = 10_000;

/** Time for the last output to arrive. */
const ANSWER_MS = 500;

export class ExtensionHost {
  readonly #ports: ExtensionHostPorts;
  readonly #entries = new Map<string, Entry>();
  /** Extensions that were enabled or disabled for this session, by id. */
  readonly #switched = new Map<string, boolean>();
  #locationKey: string | undefined;
  #work: Promise<void> = Promise.resolve();
  /** Processes that were abandoned and have not exited yet. */
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(ports: ExtensionHostPorts) {
    this.#ports = ports;
  }

  get list(): readonly ExtensionEntry[] {
    return [...this.#entries.values()].map(({ found: { id, name, source }, status, program }) => ({
      id,
      name,
      source,
      status,
      ...(program && status !== "failed" && { pid: program.pid }),
    }));
  }

  get isAvailable(): boolean {
    return this.#ports.port() !== undefined;
  }

  /** Call when the session was opened or reopened. If its location changed, the extensions are restarted. */
  sync(): void {
    const locationKey = this.#ports.port()?.locationKey;
    if (locationKey === this.#locationKey) return;
    this.#locationKey = locationKey;
    void this.#runExclusive(() => this.#reload());
  }

  /** Resolves when each has joined or failed. The wait is bounded, and each extension causes it only once. */
  async ready(signal: AbortSignal): Promise<void> {
    if (!this.isAvailable) return;
    const late = deferred<void>();
    const giveUp = (): void => late.resolve();
    const timer = setTimeout(() => {
      for (const { settled } of this.#entries.values()) settled.resolve();
      giveUp();
    }, PATIENCE_MS);
    signal.addEventListener("abort", giveUp, { once: true });
    const all = this.#work.then(() => Promise.all([...this.#entries.values()].map(({ settled }) => settled.promise)));
    await Promise.race([all, late.promise]);
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
  }

  async reload(): Promise<void> {
    this.#requirePort();
    await this.#runExclusive(() => this.#reload({ again: true }));
  }

  async setEnabled(id: string, enabled: boolean): Promise<void> {
    this.#requirePort();
    await this.#runExclusive(async () => {
      const entry = this.#entries.get(id);
      if (!entry) throw unknown(id);
      this.#switched.set(id, enabled);
      if (!enabled) await this.#end(entry, "disabled");
      else if (entry.status === "disabled" || entry.status === "failed") await this.#startAgain(id);
      this.#tell();
    });
  }

  /** Looks it up again: its files may have changed since it was approved. */
  async #startAgain(id: string): Promise<void> {
    const found = (await this.#ports.port()?.find({ again: true }))?.find((one) => one.id === id);
    if (!found) throw unknown(id);
    const entry = newEntry(found);
    this.#entries.set(id, entry);
    await this.#start(entry);
  }

  /** Call when it has joined as a client and its tools are registered. */
  joined(connection: ClientConnection): void {
    const entry = this.#of(connection);
    if (entry?.status !== "starting") return;
    entry.status = "running";
    entry.settled.resolve();
    this.#tell();
  }

  /** Call when it has identified itself. From now on the join timeout does not apply. */
  asked(connection: ClientConnection): void {
    clearTimeout(this.#of(connection)?.joining);
  }

  /** Call when it was refused. It is ended after a short delay, so that it can read the reason. */
  refused(connection: ClientConnection, why: string): void {
    const entry = this.#of(connection);
    if (!entry) return;
    clearTimeout(entry.joining);
    entry.joining = setTimeout(() => this.#fail(entry, why), ANSWER_MS);
  }

  /** Call when its connection closed: the server closed it, with a reason, or its process ended. */
  async handleDisconnect(connection: ClientConnection): Promise<void> {
    const entry = this.#of(connection);
    if (!entry) return;
    const { program } = entry;
    const { closedFor } = connection;
    if (closedFor !== undefined) return this.#fail(entry, `${closedFor} Its stdout must carry only messages`);
    await Promise.race([program?.ended, delay(ANSWER_MS, undefined, { ref: false })]);
    if (entry.program === program) this.#fail(entry, "it closed its connection");
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#runExclusive(() => this.#endAll());
    await Promise.all(this.#ending);
  }

  async #reload(how?: { readonly again: true }): Promise<void> {
    await this.#endAll();
    this.#entries.clear();
    const port = this.#ports.port();
    if (port && !this.#isClosed) {
      for (const found of await port.find(how)) this.#entries.set(found.id, newEntry(found));
      await Promise.all([...this.#entries.values()].map((entry) => this.#start(entry)));
    }
    this.#tell();
  }

  async #start(entry: Entry): Promise<void> {
    const port = this.#ports.port();
    const { found } = entry;
    const isOn = this.#switched.get(found.id) ?? !port?.isDisabled(found.id);
    entry.status = isOn ? "starting" : "disabled";
    entry.settled = deferred();
    if (!port || !isOn || this.#isClosed) return entry.settled.resolve();
    try {
      const program = await port.start(found, await this.#ports.profile(found));
      entry.program = program;
      entry.connection = this.#ports.accept(program, found);
      entry.joining = setTimeout(() => this.#fail(entry, `it did not join within ${JOIN_MS / 1000} seconds`), JOIN_MS);
      void program.ended.then((how) => {
        if (entry.program === program) this.#fail(entry, how);
      });
      this.#tell();
    } catch (error) {
      this.#fail(entry, error instanceof Error ? error.message : String(error));
    }
  }

  #fail(entry: Entry, why: string): void {
    if (entry.status !== "starting" && entry.status !== "running") return;
    const words = entry.program?.lastStderr() ?? "";
    const ending = this.#end(entry, "failed")
      .catch(() => undefined)
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    const said = words === "" ? "" : ` Its last output: ${quotedLine(telling(words))}`;
    this.#ports.warn(`The extension ${entry.found.name} failed: ${quotedLine(why)}.${said}${remedy(words)}`);
    this.#tell();
  }

  async #end(entry: Entry, status: "failed" | "disabled"): Promise<void> {
    const { program, connection } = entry;
    entry.status = status;
    delete entry.program;
    delete entry.connection;
    clearTimeout(entry.joining);
    entry.settled.resolve();
    connection?.close();
    await program?.stop();
  }

  async #endAll(): Promise<void> {
    await Promise.all([...this.#entries.values()].map((entry) => this.#end(entry, "disabled")));
  }

  #of(connection: ClientConnection): Entry | undefined {
    return [...this.#entries.values()].find((entry) => entry.connection === connection);
  }

  #tell(): void {
    if (!this.#isClosed) this.#ports.onChange(this.list);
  }

  #requirePort(): void {
    if (this.isAvailable) return;
    throw new TroupeError("usage", "Extensions not available: no client of this session has asked for them.", {
      hint: "Open it with requestExtensions.",
    });
  }

  /** Runs one operation at a time. A failure does not block the next one. */
  #runExclusive(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch((error: unknown) => {
      if (!this.#isClosed) this.#ports.warn(`Extensions: ${error instanceof Error ? error.message : String(error)}`);
    });
    return done;
  }
}

const MAX_WORDS = 300;

/** Returns the error line from a crashed process's output, which precedes the stack trace. */
function telling(words: string): string {
  const error = words.match(/^(?:Uncaught )?[A-Za-z]*Error\b.*$/gm)?.at(-1);
  return error ?? words.slice(-MAX_WORDS);
}

const unknown = (id: string): TroupeError =>
  new TroupeError("usage", `There is no extension ${id}.`, {
    hint: "session.extensions.list shows them. A warning names those that are not allowed to run.",
  });

const newEntry = (found: Found): Entry => ({ found, status: "starting", settled: deferred() });

function remedy(words: string): string {
  if (!words.includes("ERR_MODULE_NOT_FOUND") || !words.includes("@github/copilot-sdk")) return "";
  return " Set extensionSdkPath to the folder of the SDK, or install @github/copilot-sdk where troupe is installed.";
}
