import { clip } from "../../lib/text.ts";
import type { Emit, SessionEvent } from "../../protocol/event.ts";
import { isAsked } from "../../protocol/message.ts";
import type { PromptAndTools } from "../session-model.ts";

/**
 * Session facts that the log states around a message: model, system prompt, tools, title. Each is emitted when it is
 * new.
 */
export class SessionPreamble {
  #lastModel: string | undefined;
  #lastSystem: string | undefined;
  #title: string | undefined;
  #titleTold = false;
  #toolsTold = false;

  get title(): string | undefined {
    return this.#title;
  }

  apply(event: SessionEvent): void {
    if (event.type === "session.model_change") this.#lastModel = event.data.newModel;
    if (event.type === "system.message") this.#lastSystem = event.data.content;
    if (event.type === "troupe.session_named" && event.data.auto) this.#title = event.data.name;
    // A message of a hook or a tool in the user's role is not a title.
    if (event.type === "user.message" && isAsked(event.data.source)) this.#title ??= titleOf(event.data.content);
  }

  /** Clears the state before the log is folded again. */
  reset(): void {
    this.#lastModel = undefined;
    this.#lastSystem = undefined;
    this.#title = undefined;
  }

  /** Marks the title of a resumed session as already emitted. */
  restored(): void {
    this.#titleTold = this.#title !== undefined;
  }

  before(emit: Emit, { model, promptAndTools }: { model: string; promptAndTools: PromptAndTools }): void {
    const { system, skills } = promptAndTools;
    if (this.#lastModel !== model) {
      const previous = this.#lastModel === undefined ? {} : { previousModel: this.#lastModel };
      void emit("session.model_change", { newModel: model, ...previous, source: "startup" });
    }
    if (!this.#toolsTold && skills) void emit("session.skills_loaded", { skills: [...skills] });
    if (this.#lastSystem !== system) void emit("system.message", { role: "system", content: system });
    if (!this.#toolsTold) void emit("session.tools_updated", { model });
    this.#toolsTold = true;
  }

  after(emit: Emit): void {
    if (this.#titleTold || this.#title === undefined) return;
    this.#titleTold = true;
    void emit("session.title_changed", { title: this.#title });
  }
}

const titleOf = (prompt: string): string => clip(prompt.trim().split("\n", 1)[0] ?? "", 72);
