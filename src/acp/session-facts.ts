import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { defined } from "../lib/defined.ts";
import type { EventOf, SessionEvent } from "../protocol/event.ts";
import type { Abilities } from "./abilities.ts";
import { textBlock } from "./content.ts";

/** Facts about a session as a whole: title, mode, context, cost, notices. */
export class EditorSessionFacts {
  readonly #abilities: Abilities;
  #title: string | undefined;
  #context: { readonly used: number; readonly size: number } | undefined;
  /** Undefined once the price of a call is unknown: a part of the sum is not the sum. */
  #costUsd: number | undefined = 0;
  #compactions = 0;

  constructor(abilities: Abilities) {
    this.#abilities = abilities;
  }

  /** Adds the cost from before the first received event. */
  addCost(costUsd: number | null): void {
    this.#costUsd = this.#costUsd === undefined || costUsd === null ? undefined : this.#costUsd + costUsd;
  }

  /** Sets the context usage that is known before the next model call. */
  context(used: number, size: number): readonly SessionUpdate[] {
    this.#context = { used, size };
    return this.#usage();
  }

  /** Returns an update if the title is new. */
  named(title: string, updatedAt?: string): readonly SessionUpdate[] {
    if (title === this.#title) return [];
    this.#title = title;
    return [{ sessionUpdate: "session_info_update", title, ...defined({ updatedAt }) }];
  }

  /** Returns the updates for an event of any agent. `isLive` is false for events of a replayed log. */
  of(event: SessionEvent, isLive: boolean): readonly SessionUpdate[] {
    if (event.type === "troupe.usage") return this.#spent(event, isLive);
    if (event.agentId !== undefined) return [];
    switch (event.type) {
      case "session.mode_changed":
        return isLive ? [{ sessionUpdate: "current_mode_update", currentModeId: event.data.newMode }] : [];
      case "session.title_changed":
        return this.named(event.data.title, event.timestamp);
      case "troupe.session_named":
        return this.named(event.data.name, event.timestamp);
      case "session.usage_info":
        return this.context(event.data.currentTokens, event.data.tokenLimit);
      case "session.compaction_start":
        this.#compactions++;
        return this.#compaction({ status: "in_progress" });
      case "session.compaction_complete":
        return this.#compacted(event);
      case "session.info":
        return isLive ? this.#notice("info", event.data.message) : [];
      case "session.warning":
        return isLive ? this.#notice("warning", event.data.message) : [];
      default:
        return [];
    }
  }

  /** Returns the context usage and the cost so far, if they are known. */
  #usage(): readonly SessionUpdate[] {
    if (!this.#context) return [];
    const cost = this.#costUsd !== undefined && this.#costUsd > 0 && { amount: this.#costUsd, currency: "USD" };
    return [{ sessionUpdate: "usage_update", ...this.#context, ...(cost && { cost }) }];
  }

  #spent({ data, agentId }: EventOf<"troupe.usage">, isLive: boolean): readonly SessionUpdate[] {
    this.addCost(data.costUsd);
    const isMain = agentId === undefined && data.inputTokens > 0;
    // The reply is in the context from now on.
    if (isMain && this.#context) this.#context = { ...this.#context, used: data.inputTokens + data.outputTokens };
    return isLive ? this.#usage() : [];
  }

  #compacted({ data }: EventOf<"session.compaction_complete">): readonly SessionUpdate[] {
    if (data.success && data.postCompactionTokens !== undefined && this.#context)
      this.#context = { ...this.#context, used: data.postCompactionTokens };
    const { summaryContent = "", error = "The conversation could not be compacted." } = data;
    const end = data.success
      ? { status: "completed", ...(summaryContent !== "" && { summary: [textBlock(summaryContent)] }) }
      : { status: "failed", error };
    return [...this.#compaction(end), ...this.#usage()];
  }

  #compaction(update: { status: string }): readonly SessionUpdate[] {
    if (!this.#abilities.compaction) return [];
    return [{ sessionUpdate: "compaction_update", compactionId: `compaction-${this.#compactions}`, ...update }];
  }

  #notice(severity: "info" | "warning", message: string): readonly SessionUpdate[] {
    const [title = "", ...rest] = message.trim().split("\n");
    if (!this.#abilities.notices || title === "") return [];
    const description = rest.join("\n").trim();
    return [{ sessionUpdate: "notice", severity, title, ...(description !== "" && { description }) }];
  }
}
