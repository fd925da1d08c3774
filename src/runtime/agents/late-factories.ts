import type { Factories } from "../../factories/factories.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { SessionSetup } from "../setup/session-setup.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** The factories of a session, opened on first use because most sessions have none. */
export class LateFactories {
  readonly #open: () => Promise<Factories>;
  #opening: Promise<Factories> | undefined;
  #opened: Factories | undefined;

  constructor(open: () => Promise<Factories>) {
    this.#open = open;
  }

  open(): Promise<Factories> {
    this.#opening ??= this.#open().then((factories) => {
      this.#opened = factories;
      return factories;
    });
    return this.#opening;
  }

  get isBusy(): boolean {
    return this.#opened?.isBusy ?? false;
  }

  rewound(events: readonly SessionEvent[]): void {
    this.#opened?.rewound(events);
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }
}

/** Returns undefined if no program brings factories, or if they are disabled. */
export function lateFactories({ request, channel }: SessionSetup, { flags }: Workspace): LateFactories | undefined {
  const source = request.client?.program?.factories;
  if (!source || !flags.has("AGENT_FACTORIES")) return undefined;
  return new LateFactories(async () => {
    const { session } = channel;
    if (!session) throw new Error("factories were asked for before there is a session");
    const { openFactories } = await import("../setup/session-factories.ts");
    return openFactories(session, source);
  });
}
