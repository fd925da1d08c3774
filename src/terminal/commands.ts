/** Handles keys and submitted text: sends prompts, runs commands, opens overlays. */
import { nearest, plural } from "../lib/text.ts";
import type { QueuedMessage } from "../view/view.ts";
import { answerWords } from "./card-answers.ts";
import { openAgentRun, openTree } from "./commands/agent-overlays.ts";
import { localCommands } from "./commands/list.ts";
import { openKeys, openOutput } from "./commands/overlays.ts";
import { openRewind } from "./commands/pickers.ts";
import type { Commands, Host } from "./host.ts";
import type { CommandEntry } from "./input/completion.ts";
import type { Action } from "./input/key-table.ts";
import { mentionedIn } from "./input/mentions.ts";
import { mainTarget, messageTarget } from "./prompt-target.ts";
import { safe } from "./screen/safe.ts";
import { showImage } from "./screen/show-image.ts";
import { runUserCommand } from "./user-command.ts";

const MODES = ["interactive", "plan", "autopilot"] as const;

export class CommandRunner implements Commands {
  readonly #app: Host;
  /** Enter was pressed before the session was open. */
  #isWaiting = false;
  /** Steps to other modes that were asked for before the session was open. */
  #modeSteps = 0;

  constructor(app: Host) {
    this.#app = app;
  }

  /** The session is open: applies the mode and sends the prompt that were asked for before. */
  opened({ sends }: { sends: boolean }): void {
    const [isWaiting, steps] = [this.#isWaiting && sends, this.#modeSteps];
    this.#isWaiting = false;
    this.#modeSteps = 0;
    const send = (): void => void (isWaiting && this.send("steer"));
    if (steps === 0) send();
    else this.#run(this.#changeMode(steps)?.then(send));
  }

  #changeMode(steps: number): Promise<void> | undefined {
    const { session } = this.#app;
    const next = MODES[(MODES.indexOf(session?.view.session.mode ?? "interactive") + steps) % MODES.length];
    return session?.setMode(next ?? "interactive");
  }

  get entries(): readonly CommandEntry[] {
    return localCommands;
  }

  /** Sends the draft to whatever the prompt is for. */
  send(how: "steer" | "queue"): void {
    const app = this.#app;
    const { target } = app;
    const text = app.editor.text;
    if (target.kind === "agent") {
      if (text.trim() === "") return;
      app.editor.take();
      app.aim(mainTarget);
      this.#run(this.#messageAgent(target.agentId, text));
      return;
    }
    if (target.kind !== "main") {
      app.editor.take();
      answerWords(app, target, text.trim());
      return;
    }
    if (!app.session && app.retry) {
      const { retry } = app;
      app.retry = undefined;
      this.#isWaiting = text.trim() !== "";
      this.#run(
        retry().catch((error: unknown) => {
          app.retry ??= retry;
          throw error;
        }),
      );
      return;
    }
    if (text.trim() === "") return;
    if (!app.session) {
      this.#isWaiting = true;
      app.hint("sent as soon as the session is open");
      return;
    }
    app.editor.take();
    app.vim?.reset();
    void app.history.add(text);
    this.#run(this.#submit(text, how));
  }

  async #submit(text: string, how: "steer" | "queue"): Promise<void> {
    const app = this.#app;
    const { session } = app;
    if (!session) return;
    if (text.startsWith("!")) {
      const output = await runUserCommand(session, text);
      if (output !== undefined) app.shellOutput.push(output);
      return;
    }
    const [, name, args = ""] = /^\/(mcp:\S+|[\w:-]+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
    if (name !== undefined) {
      const local = localCommands.find((command) => command.name === name && command.takes(args.trim()));
      if (local) return local.run(app, args.trim());
      if (session.commands.some((command) => command.name === name)) return this.#command(text.trim());
      const close = nearest(
        name,
        [...localCommands, ...session.commands].map((command) => command.name),
      );
      if (close !== undefined) app.hint(`did you mean /${close}?`);
    }
    // A command that the server does not know, such as a path, is a prompt.
    if (name !== undefined) return this.#command(text.trim());
    const [images, files] = await Promise.all([app.images.attachedTo(text), mentionedIn(text, app.options.cwd)]);
    const attachments = [...images, ...files];
    await session.send(text, how, { attachments, before: this.#takeShellOutput() });
    for (const path of app.images.pathsIn(text)) await showImage(app, path);
  }

  /** A command answers by itself or has the agent answer. What it says is shown, not sent. */
  async #command(text: string): Promise<void> {
    const app = this.#app;
    app.commit(["", `${app.style.cyan("›")} ${app.style.bold(safe(text).split("\n")[0] ?? "")}`]);
    try {
      const said = await app.session?.submit(text);
      if (said !== undefined && said !== "") app.commit(safe(said).trimEnd().split("\n"));
    } catch (error) {
      app.fail(error);
    }
  }

  #takeShellOutput(): readonly string[] {
    const { shellOutput } = this.#app;
    this.#app.shellOutput = [];
    return shellOutput;
  }

  /** A message that is not accepted becomes the draft for its agent again. */
  async #messageAgent(id: string, message: string): Promise<void> {
    const app = this.#app;
    try {
      const params = { id, message };
      const result = await app.call<{ sent: boolean; error?: string }>("session.tasks.sendMessage", params);
      if (!result.sent) throw new Error(result.error ?? `${id} did not accept the message.`);
      app.hint(`sent to ${id}`);
    } catch (error) {
      this.#restoreMessage(id, message);
      throw error;
    }
  }

  /** Goes in front of what was typed for the agent since then, and leaves a new draft of the main prompt alone. */
  #restoreMessage(id: string, message: string): void {
    const app = this.#app;
    const isHere = app.target.kind === "agent" && app.target.agentId === id;
    const newer = isHere ? app.editor.text : (app.agentDrafts.get(id) ?? "");
    const draft = newer === "" ? message : `${message}\n${newer}`;
    if (isHere) {
      app.editor.set(draft);
      return;
    }
    app.agentDrafts.set(id, draft);
    if (app.target.kind === "main" && app.editor.isEmpty) app.aim(messageTarget(id));
    else app.hint(`the message to ${id} is its draft again: m in the tree`);
  }

  interrupt(): void {
    this.#app.hint("interrupting");
    this.#run(this.#app.session?.interrupt());
  }

  /** Takes a queued message back into the prompt. */
  async recall({ messageId, text }: QueuedMessage): Promise<void> {
    const app = this.#app;
    const { removed } = await app.call<{ removed: boolean }>("session.queue.removeAt", { id: messageId });
    if (removed) app.editor.set(text);
    else app.hint("already delivered");
  }

  /** Returns false when no agent is waited for, so that Ctrl+B moves the cursor. */
  background(): boolean {
    const app = this.#app;
    const awaited = [...(app.session?.view.agents.values() ?? [])].find(
      ({ status, isAwaited, parentId }) => status === "running" && isAwaited && parentId === undefined,
    );
    if (!awaited) return false;
    this.#run(
      app.call("session.tasks.promoteToBackground", { id: awaited.id }).then(() => {
        app.hint(`${awaited.id} works in the background`);
      }),
    );
    return true;
  }

  /** Actions that open something or concern all agents. Returns false for those that are not known here. */
  act(action: Action, { isAgain }: { isAgain: boolean }): boolean {
    const app = this.#app;
    switch (action) {
      case "mode":
        if (app.session) this.#run(this.#changeMode(1));
        else {
          this.#modeSteps++;
          app.hint("the mode changes as soon as the session is open");
        }
        return true;
      case "output":
        openOutput(app);
        return true;
      case "agents":
        openTree(app);
        return true;
      case "stop-agents":
        if (isAgain) this.#run(this.#stopAgents());
        else app.hint("Ctrl+X Ctrl+K again stops all background agents");
        return true;
      default:
        return false;
    }
  }

  async #stopAgents(): Promise<void> {
    const count = await this.#app.call("session.cancelAllBackgroundAgents");
    this.#app.hint(`${plural(Number(count), "agent")} stopped`);
  }

  openAgent(agentId: string): void {
    openAgentRun(this.#app, agentId);
  }

  showKeys(): void {
    openKeys(this.#app);
  }

  async rewind(): Promise<void> {
    this.#run(openRewind(this.#app));
  }

  #run(work: Promise<unknown> | undefined): void {
    work?.catch((error: unknown) => this.#app.fail(error));
  }
}
