/**
 * The memory of one session: its prompt section, the main agent's tools that add facts, and the writes at the end.
 * Failures disable the memory with a notice; they never fail the session. This folder also holds the context board, its
 * consolidation, and the index of past sessions.
 */

import { agentMemory, personApprovals } from "../../context/memory/agent-memory.ts";
import { messageOf } from "../../context/memory/failure.ts";
import type { MemoryPorts, MemoryStore, Recall } from "../../context/memory/memory.ts";
import { type MemorySettings, openMemory, parseMemorySettings } from "../../context/memory/open.ts";
import type { Optimise } from "../../context/memory/repository-file.ts";
import type { ServicePrompts } from "../../context/memory/service.ts";
import { repositorySpaces } from "../../context/memory/space.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Flags } from "../../protocol/flags.ts";
import { memoryTools, memoryVoteTools } from "../../tools/builtin.ts";
import type { Tool } from "../../tools/tool.ts";

export interface SessionMemoryOptions {
  readonly cwd: string;
  readonly sessionId: string;
  readonly stateRoot: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether the user trusts the folder. Only then is its git origin used. */
  readonly isTrusted: boolean;
  /** `memory` of the user's settings. */
  readonly settings: Json | undefined;
  readonly flags: Flags;
  readonly ports: MemoryPorts;
  /** Replaces the store of the settings. */
  readonly store?: MemoryStore;
  readonly prompts?: ServicePrompts;
  /** Used if the settings enable merging. */
  readonly merge?: Optimise;
  notice(message: string): void;
  /** Called after each recall. */
  onRecall(recalled: { readonly store: MemoryStore["kind"]; readonly count: number }): void;
  /** Shows a message to the user. */
  inform(message: string): void;
  /** Called when the prompt section or the tools change. */
  onChange(): void;
}

export interface SessionMemory {
  /** The section of the system prompt; empty before `ready`, and if there are no facts. */
  readonly section: string;
  /** Tools for the main agent only. */
  readonly tools: readonly Tool[];
  /** Number of facts, whether in the section or not. */
  readonly count: number;
  /** False if `ready` may take noticeable time. */
  readonly isQuick: boolean;
  /** Recalls facts, once per repository. Resolves within 3 s with any store. */
  ready(signal: AbortSignal): Promise<void>;
  /** Receives every event of the session. */
  onEvent(event: SessionEvent): void;
  /** Writes pending changes. */
  close(): Promise<void>;
}

/** Returns undefined if the memory cannot be opened, and sends a notice. */
export function sessionMemory(options: SessionMemoryOptions): SessionMemory | undefined {
  try {
    return new FactMemory(options);
  } catch (error) {
    options.notice(`There is no memory in this session: ${messageOf(error)}`);
    return undefined;
  }
}

class FactMemory implements SessionMemory {
  readonly #options: SessionMemoryOptions;
  readonly #settings: MemorySettings;
  readonly #approvals = personApprovals();
  readonly #agent: ReturnType<typeof agentMemory>;
  /** Pending updates of use counts. */
  readonly #counting: Promise<void>[] = [];
  #spaceKey: string;
  #store: MemoryStore;
  #recall: Recall | undefined;
  #tools: readonly Tool[] = [];

  constructor(options: SessionMemoryOptions) {
    this.#options = options;
    this.#settings = settingsOf(options);
    this.#spaceKey = this.#currentSpaceKey();
    this.#store = this.#open();
    this.#agent = agentMemory({
      store: () => this.#store,
      redactor: options.ports.redactor,
      sessionId: options.sessionId,
      isApproved: this.#approvals.isApproved,
      definitions: () => this.#recall?.definitions,
      missing: () => (this.#currentSpaceKey() === this.#spaceKey ? undefined : MOVED),
      onProposed: (id, fact) =>
        options.inform(`proposed to remember: ${fact} To accept it: troupe memory accept ${id}`),
    });
    this.#tools = this.#makeTools();
    // Start requests to a service early, while the session starts.
    if (this.#store.kind === "service") void this.#store.recall();
  }

  get section(): string {
    return this.#recall?.text ?? "";
  }

  get tools(): readonly Tool[] {
    return this.#tools;
  }

  get count(): number {
    return this.#recall?.count ?? 0;
  }

  get isQuick(): boolean {
    return this.#store.kind === "local" || this.#store.kind === "repository-file";
  }

  async ready(signal: AbortSignal): Promise<void> {
    const spaceKey = this.#currentSpaceKey();
    if (spaceKey === GONE) return;
    if (spaceKey !== this.#spaceKey) await this.#move(spaceKey);
    if (this.#recall && !this.#store.isOutdated) return;
    const recall = await untilAborted<Recall | undefined>(this.#store.recall(), signal, () => undefined);
    // The repository changed meanwhile, so this recall is not for this session.
    if (recall === undefined || spaceKey !== this.#spaceKey) return;
    this.#recall = recall;
    this.#tools = this.#makeTools();
    this.#options.onRecall({ store: this.#store.kind, count: recall.count });
    for (const notice of recall.notices) this.#options.notice(notice);
    if (recall.ids.length > 0) this.#counting.push(this.#store.used(recall.ids));
    this.#options.onChange();
  }

  onEvent(event: SessionEvent): void {
    this.#approvals.onEvent(event);
  }

  async close(): Promise<void> {
    await Promise.all(this.#counting);
    await this.#closeStore();
  }

  /** Closes the former repository's store and opens the new one. */
  async #move(spaceKey: string): Promise<void> {
    await this.#closeStore();
    this.#spaceKey = spaceKey;
    this.#recall = undefined;
    this.#store = this.#open();
    this.#tools = this.#makeTools();
    this.#options.onChange();
  }

  async #closeStore(): Promise<void> {
    await this.#store
      .close()
      .catch((error: unknown) => this.#options.notice(`The memory could not be written: ${messageOf(error)}`));
  }

  #open(): MemoryStore {
    const { store, merge, isTrusted, notice, ...rest } = this.#options;
    if (store) return store;
    const { gitRoot, repository } = workingDirectory(rest.cwd);
    const isService = this.#settings.store === "service";
    if (isService && !isTrusted && repository !== undefined) notice(untrusted(repository));
    return openMemory({
      ...rest,
      isTrusted,
      settings: this.#settings,
      // An untrusted folder can claim to be any repository.
      ...(isTrusted && repository !== undefined && { repository }),
      ...defined({ gitRoot }),
      ...(this.#settings.merge && merge && { optimise: merge }),
    });
  }

  /**
   * Returns the tools. A service that did not answer gets none; one that does not support storing gets no store tool.
   */
  #makeTools(): readonly Tool[] {
    const definitions = this.#recall?.definitions;
    const isAsked = this.#store.kind === "service" && this.#recall !== undefined;
    const canStore = !isAsked || definitions?.store !== undefined;
    const canVote = this.#agent.canVote && (!isAsked || definitions !== undefined);
    return [
      ...(canStore ? memoryTools.map((make) => make(this.#agent)) : []),
      ...(canVote ? memoryVoteTools.map((make) => make(this.#agent)) : []),
    ];
  }

  /** Returns a key that stays the same while the folder belongs to the same repository. */
  #currentSpaceKey(): string {
    const { cwd, isTrusted } = this.#options;
    try {
      const spaces = repositorySpaces(cwd, { isTrusted }).map(({ key }) => key);
      return JSON.stringify([workingDirectory(cwd).repository, ...spaces]);
    } catch {
      return GONE;
    }
  }
}

/** Merges settings over feature flags. */
function settingsOf({ settings, flags }: SessionMemoryOptions): MemorySettings {
  return {
    ...(flags.has("MEMORY_IN_REPO_STORE") && { store: "repository-file" as const }),
    ...(flags.has("AGENTIC_MEMORY_USER_SCOPED") && { userScope: true }),
    ...parseMemorySettings(settings),
  };
}

const GONE = "gone";
const MOVED = "this folder belongs to another repository than when the message was sent.";

function untrusted(repository: string): string {
  return `The memory service is not asked about ${repository}: this folder is not trusted. See: troupe trust`;
}
