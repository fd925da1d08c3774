/** The meaning of the keys of the prompt. */
import type { Host } from "./host.ts";
import { editExternally } from "./input/external-editor.ts";
import { HistorySearch } from "./input/history-search.ts";
import type { Action } from "./input/key-table.ts";
import { mainTarget } from "./prompt-target.ts";

/** Two presses of a key within this time are one gesture. */
const TWICE_MS = 1_500;

export class PromptKeys {
  readonly #app: Host;
  /** Ctrl+C has cleared the draft: it is not the first of two that exit. */
  #hasCleared = false;
  #last: { readonly action: Action; readonly at: number } | undefined;
  #stash: string | undefined;

  constructor(app: Host) {
    this.#app = app;
  }

  /** Returns false when the key is for the editor. */
  act(action: Action): boolean {
    const now = performance.now();
    const isAgain = this.#last?.action === action && now - this.#last.at < TWICE_MS;
    this.#hasCleared = false;
    const isDone = this.#do(action, { isAgain });
    if (isDone) this.#last = this.#hasCleared ? undefined : { action, at: now };
    return isDone;
  }

  #do(action: Action, { isAgain }: { isAgain: boolean }): boolean {
    const app = this.#app;
    switch (action) {
      case "send":
        return this.#enter();
      case "newline":
        app.editor.newLine();
        return true;
      case "queue":
        return this.#queue();
      case "recall":
        return this.#recall();
      case "history-older":
        return this.#browse(app.history.older(app.editor.text));
      case "history-newer":
        return this.#browse(app.history.newer());
      case "history-search":
        app.search = new HistorySearch(app.history);
        return true;
      case "back":
        this.#back({ isAgain });
        return true;
      case "interrupt":
        this.#interrupt({ isAgain });
        return true;
      case "exit":
        if (!app.editor.isEmpty) return false;
        app.exit();
        return true;
      case "agents-left":
        return app.editor.isEmpty && app.commands.act("agents", { isAgain });
      case "attend":
        return app.attention.focus();
      case "background":
        return app.commands.background();
      case "stash":
        this.#swapStash();
        return true;
      case "editor":
        void editExternally(app);
        return true;
      case "paste-image":
        void this.#pasteImage();
        return true;
      case "redraw":
        app.screen.redraw();
        return true;
      case "suspend":
        app.options.tty.suspend(app.screen);
        return true;
      case "help":
        if (!app.editor.isEmpty) return false;
        app.commands.showKeys();
        return true;
      default:
        return app.commands.act(action, { isAgain });
    }
  }

  #enter(): boolean {
    const app = this.#app;
    if (app.editor.beforeCaret.text.endsWith("\\")) {
      app.editor.complete(1, "\n");
      return true;
    }
    app.commands.send("steer");
    return true;
  }

  /** Tab queues while the agent works, and completes where there is something to complete. */
  #queue(): boolean {
    const app = this.#app;
    if (!app.isBusy || app.editor.isEmpty || app.target.kind !== "main") return true;
    app.commands.send("queue");
    return true;
  }

  #recall(): boolean {
    const app = this.#app;
    if (app.history.isBrowsing) return this.#browse(app.history.older(app.editor.text));
    if (!app.editor.isEmpty) return false;
    const queued = app.view.queue.filter(({ agentId }) => agentId === undefined).at(-1);
    if (!queued) return this.#browse(app.history.older(""));
    void app.commands.recall(queued);
    return true;
  }

  #browse(text: string | undefined): boolean {
    const app = this.#app;
    if (text !== undefined) app.editor.set(text);
    return true;
  }

  #back({ isAgain }: { isAgain: boolean }): void {
    const app = this.#app;
    if (app.popup.isOpen) app.popup.close();
    else if (app.target.kind !== "main") app.aim(mainTarget);
    else if (app.attention.isFocused) app.attention.leave();
    else if (app.isBusy) app.commands.interrupt();
    else if (!isAgain) app.hint(app.editor.isEmpty ? "Esc again rewinds" : "Esc again clears the prompt");
    else if (app.editor.isEmpty) void app.commands.rewind();
    else void app.history.add(app.editor.take());
  }

  #interrupt({ isAgain }: { isAgain: boolean }): void {
    const app = this.#app;
    if (!app.editor.isEmpty) {
      void app.history.add(app.editor.take());
      this.#hasCleared = true;
      return;
    }
    if (app.target.kind !== "main") app.aim(mainTarget);
    else if (isAgain) app.exit();
    else if (app.isBusy) app.commands.interrupt();
    else app.hint("Ctrl+C again exits");
  }

  async #pasteImage(): Promise<void> {
    const app = this.#app;
    try {
      const marker = await app.images.fromClipboard(app.options.environment);
      if (marker !== undefined) app.editor.insert(`${marker} `);
      else app.hint("no image was found in the clipboard; wl-paste, xclip or pngpaste reads it");
      app.screen.changedByKey();
    } catch (error) {
      app.fail(error);
    }
  }

  #swapStash(): void {
    const app = this.#app;
    const kept = this.#stash;
    this.#stash = app.editor.isEmpty ? undefined : app.editor.take();
    if (kept !== undefined) app.editor.set(kept);
    if (this.#stash === undefined)
      app.hint(kept === undefined ? "there is no draft to put aside" : "the draft is back");
    else
      app.hint(kept === undefined ? "the draft was put aside: Ctrl+S brings it back" : "the two drafts changed places");
  }
}
