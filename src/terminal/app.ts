/**
 * The interactive terminal: keys in, frames out, a session in between. It holds the state of the prompt and decides what
 * a key means; what is drawn is a pure function of the view and this state.
 */
import type { Client } from "../sdk/client.ts";
import { SessionView } from "../view/session-view.ts";
import type { AttentionItem, View } from "../view/view.ts";
import { Attention } from "./attention.ts";
import { answerCard } from "./card-answers.ts";
import { CommandRunner } from "./commands.ts";
import type { Host, HostOptions } from "./host.ts";
import { Drafts } from "./input/drafts.ts";
import { PromptEditor } from "./input/editor.ts";
import { FileList } from "./input/files.ts";
import { PromptHistory } from "./input/history.ts";
import type { HistorySearch } from "./input/history-search.ts";
import { PromptImages, pathOf } from "./input/images.ts";
import { type KeyBinding, Keymap, keyTable } from "./input/key-table.ts";
import { Popup } from "./input/popup.ts";
import type { Input } from "./input/stdin.ts";
import { Vim } from "./input/vim.ts";
import { Notices } from "./notices.ts";
import { SHOWN_BLOCKS } from "./open-session.ts";
import type { Overlay } from "./overlays/overlay.ts";
import { liveRegion, type UiState } from "./panels/live-region.ts";
import { readPreferences, storePreferences } from "./preferences.ts";
import { PromptKeys } from "./prompt-keys.ts";
import { mainTarget, requestOf, type Target } from "./prompt-target.ts";
import type { LiveRegion } from "./screen/frame.ts";
import { safeLine } from "./screen/safe.ts";
import { Screen } from "./screen/screen.ts";
import { type Style, styleOf, type ThemeName } from "./screen/style.ts";
import { fillLine } from "./screen/wrap.ts";
import type { TerminalSession } from "./session.ts";
import { escText, statusLeft } from "./status.ts";
import { errorLines } from "./transcript/block-lines.ts";
import { commitBlocks } from "./transcript/commit-blocks.ts";

export interface AppOptions extends HostOptions {
  /** Opens a session in place of the present one; a new one without an id. */
  open(app: App, sessionId: string | undefined): Promise<void>;
}

const HINT_MS = 2_500;
const TICK_MS = 1_000;

export class App implements Host {
  readonly options: AppOptions;
  readonly screen: Screen;
  readonly editor: PromptEditor;
  readonly history: PromptHistory;
  readonly attention: Attention;
  readonly commands: CommandRunner;
  readonly notices: Notices;
  readonly #drafts: Drafts;
  /** Messages to agents that were not sent yet. */
  readonly agentDrafts = new Map<string, string>();
  readonly popup: Popup;
  readonly images: PromptImages;
  #keymap = new Keymap();
  #wrap: "words" | "terminal" = "words";
  /** The keys of the prompt, those of the user included. */
  keyTable: readonly KeyBinding[] = keyTable;
  readonly #keys: PromptKeys;
  /** Set while vim mode is on. */
  vim: Vim | undefined;
  readonly #noView = new SessionView().view;
  session: TerminalSession | undefined;
  client: Client | undefined;
  style: Style;
  overlay: Overlay | undefined;
  target: Target = mainTarget;
  /** Output of `!` commands that goes along with the next prompt. */
  shellOutput: string[] = [];
  search: HistorySearch | undefined;
  /** The session is open in another process. */
  isJoined = false;
  isLeaving = false;
  /** Set when the session could not be opened: tries once more. */
  retry: (() => Promise<void>) | undefined;
  #hint: { readonly text: string; readonly timer: NodeJS.Timeout } | undefined;
  #ticker: NodeJS.Timeout | undefined;
  #storing: Promise<void> = Promise.resolve();
  #onExit: () => void = () => undefined;
  /** Resolves when the user leaves. */
  readonly exited: Promise<void>;

  constructor(options: AppOptions) {
    const { tty, cwd, home, environment } = options;
    this.options = options;
    this.style = styleOf("default", environment);
    this.exited = new Promise((resolve) => {
      this.#onExit = resolve;
    });
    this.editor = new PromptEditor(() => this.#edited());
    this.history = new PromptHistory(home);
    this.#drafts = new Drafts(home, cwd);
    this.images = new PromptImages(home, cwd);
    this.popup = new Popup(this.editor, new FileList(cwd, () => this.#refreshPopup()));
    this.attention = new Attention({
      now: () => performance.now(),
      isDraftEmpty: () => this.editor.isEmpty,
      onChange: () => this.screen.changed(),
    });
    this.notices = new Notices({ write: (bytes) => tty.write(bytes), environment });
    this.commands = new CommandRunner(this);
    this.#keys = new PromptKeys(this);
    this.screen = new Screen({
      ...tty.screenPorts,
      fill: (line, columns) => (this.#wrap === "words" ? fillLine(line, columns) : line),
      liveRegion: (size) => this.#liveRegion(size),
      overlay: (size) => this.overlay?.rows(size) ?? [],
    });
  }

  /** Brings back what an earlier terminal in this folder left in its prompt. */
  async recoverDraft(): Promise<void> {
    const [found] = await Promise.all([this.#drafts.recover(), this.history.load()]);
    for (const [id, text] of Object.entries(found?.agents ?? {})) this.agentDrafts.set(id, text);
    if (found === undefined || found.text === "" || !this.editor.isEmpty) return;
    this.editor.set(found.text);
    this.hint("restored the draft of a terminal that was closed");
  }

  /** Applies what the user has chosen for the terminal. */
  async readPreferences(): Promise<void> {
    const { theme, vim, wrap, keys, problems } = await readPreferences(this.options.home);
    this.#wrap = wrap;
    this.style = styleOf(theme, this.options.environment);
    this.keyTable = keys;
    this.#keymap = new Keymap(keys);
    if (vim) this.setVim(true);
    for (const problem of problems) this.commit([this.style.yellow(`! ${safeLine(problem)}`)]);
  }

  get isBusy(): boolean {
    return this.view.main.status === "running";
  }

  /** The view of the session; an empty one before it is open. */
  get view(): View {
    return this.session?.view ?? this.#noView;
  }

  /** Asks a question of the terminal itself. Resolves with the index of the choice. */
  ask(about: Pick<AttentionItem, "title" | "text" | "choices">): Promise<number> {
    return this.attention.ask(about, this.view);
  }

  /** Calls a method of the session. Rejects while no session is open. */
  async call<T = unknown>(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<T> {
    if (!this.session) throw new Error("The session is not open yet.");
    return (await this.session.request(method, params)) as T;
  }

  /** Leaves the session and opens another one. */
  async switchTo(sessionId: string): Promise<void> {
    await this.options.open(this, sessionId);
  }

  /** Attaches an open session: prints the end of its past and follows it. `sends`: a prompt that waits for it is sent. */
  attach(session: TerminalSession, { isResumed, sends }: { isResumed: boolean; sends: boolean }): void {
    this.session = session;
    const blocks = session.drain();
    if (isResumed && blocks.length > SHOWN_BLOCKS) {
      const hidden = blocks.length - SHOWN_BLOCKS;
      this.commit([this.style.dim(`… ${hidden} earlier blocks: /transcript shows all`)]);
    }
    commitBlocks(this, blocks.slice(-SHOWN_BLOCKS), { isLive: false });
    this.viewChanged();
    session.readCommands().catch((error: unknown) => this.fail(error));
    this.commands.opened({ sends });
  }

  /** The view has changed: commits finished blocks and draws soon. */
  viewChanged(): void {
    const { session } = this;
    if (!session) return;
    commitBlocks(this, session.drain(), { isLive: true });
    const fresh = this.attention.update(session.view);
    this.notices.update(session.view, fresh);
    this.#dropStaleTarget();
    this.#tick();
    this.screen.changed();
  }

  commit(lines: readonly string[]): void {
    this.screen.commit(lines, { isProse: true });
  }

  /** A word on the status line that goes away by itself. */
  hint(text: string): void {
    clearTimeout(this.#hint?.timer);
    const timer = setTimeout(() => {
      this.#hint = undefined;
      this.screen.changed();
    }, HINT_MS);
    this.#hint = { text, timer };
    this.screen.changed();
  }

  fail(error: unknown): void {
    this.commit(errorLines(error, this.style));
  }

  setTheme(theme: ThemeName): void {
    this.style = styleOf(theme, this.options.environment);
    this.screen.redraw();
  }

  openOverlay(overlay: Overlay): void {
    this.overlay = overlay;
    if (this.screen.isOverlayOpen) this.screen.changedByKey();
    else this.screen.openOverlay();
  }

  closeOverlay(): void {
    this.overlay?.closed?.();
    this.overlay = undefined;
    this.screen.closeOverlay();
  }

  /** Sets the use of the prompt: a prompt, an answer or a message to an agent. Stores the current draft first. */
  aim(target: Target): void {
    const { target: before } = this;
    if (before.kind === "agent") this.agentDrafts.set(before.agentId, this.editor.text);
    const draft = before.kind === "main" ? this.editor.take() : before.draft;
    this.target = target.kind === "main" ? mainTarget : { ...target, draft };
    const own = target.kind === "agent" ? (this.agentDrafts.get(target.agentId) ?? "") : "";
    this.editor.set(target.kind === "main" ? draft : own);
    this.screen.changedByKey();
  }

  exit(): void {
    this.#onExit();
  }

  async close(): Promise<void> {
    clearTimeout(this.#hint?.timer);
    clearInterval(this.#ticker);
    this.attention.close();
    if (this.target.kind !== "main") this.aim(mainTarget);
    this.#keepDrafts();
    await this.#drafts.flush();
  }

  input(input: Input): void {
    if (input.kind === "kitty") this.options.tty.enableKitty();
    else if (input.kind === "cursor") this.screen.reported(input.column);
    else if (input.kind === "terminal") this.screen.identified(input.name);
    else if (input.kind === "focus") {
      this.notices.focus(input.isFocused, this.session?.view, (lines) => this.commit(lines));
    } else {
      if (input.kind === "key") this.#key(input);
      else this.#pasted(input.text);
      this.screen.changedByKey();
    }
  }

  #pasted(text: string): void {
    this.attention.typed();
    if (!this.overlay) void this.#paste(text);
  }

  /** The path of an image becomes an attachment; all other text is pasted at once. */
  async #paste(text: string): Promise<void> {
    const isPath = this.target.kind === "main" && pathOf(text, this.options.cwd) !== undefined;
    const marker = isPath ? await this.images.fromPaste(text) : undefined;
    if (marker === undefined) this.editor.paste(text);
    else this.editor.insert(`${marker} `);
    if (isPath) this.screen.changedByKey();
  }

  #key(key: { readonly data: string; readonly id: string | undefined }): void {
    if (this.overlay) {
      const { overlay } = this;
      if (overlay.key(key) === "close" && this.overlay === overlay) this.closeOverlay();
      return;
    }
    if (this.search) {
      this.#searchKey(key);
      return;
    }
    // Words that are typed for a card, or for an agent, are not keys of a card.
    const answer = this.target.kind === "main" ? this.attention.answer(key.id ?? key.data) : undefined;
    this.attention.typed();
    if (answer) {
      answerCard(this, answer);
      return;
    }
    if (this.popup.key(key.id)) return;
    if (this.vim && !this.popup.isOpen && this.vim.key(key)) return;
    const action = this.#keymap.find(key.id ?? key.data, performance.now());
    if (action === "wait") return;
    if (action && this.#keys.act(action)) return;
    this.history.leave();
    this.popup.beforeTyping(key.data);
    this.editor.handle(key.data);
  }

  #searchKey(key: { readonly data: string; readonly id: string | undefined }): void {
    const end = this.search?.key(key);
    if (end === undefined) return;
    this.search = undefined;
    if (end.text !== undefined) this.editor.set(end.text);
  }

  #edited(): void {
    this.#keepDrafts();
    this.#refreshPopup();
  }

  /** Answers to requests are not kept: they end with the request. */
  #keepDrafts(): void {
    const { target } = this;
    if (target.kind === "agent") this.agentDrafts.set(target.agentId, this.editor.text);
    const text = target.kind === "main" ? this.editor.text : target.draft;
    this.#drafts.changed({ text, agents: Object.fromEntries(this.agentDrafts) });
  }

  #refreshPopup(): void {
    this.popup.refresh({
      isOn: this.target.kind === "main",
      commands: [...this.commands.entries, ...(this.session?.commands ?? [])],
    });
    this.screen.changed();
  }

  /** Turns vim mode on or off. */
  setVim(isOn: boolean): void {
    const { editor } = this;
    this.vim = isOn
      ? new Vim({
          text: () => editor.shown,
          caret: () => editor.caret,
          change: (text, caret) => editor.change(text, caret),
          move: (caret) => {
            editor.caret = caret;
          },
          undo: () => editor.undo(),
          type: (data) => editor.handle(data),
        })
      : undefined;
    this.screen.changed();
  }

  /** Stores choices for the terminal, one after the other. */
  prefer(changes: Parameters<typeof storePreferences>[1]): Promise<void> {
    const next = this.#storing.then(() => storePreferences(this.options.home, changes));
    this.#storing = next.catch(() => undefined);
    return next;
  }

  /** An answer that was being typed is dropped with its request. */
  #dropStaleTarget(): void {
    const { target } = this;
    if (!("item" in target) || this.attention.items.some(({ id }: AttentionItem) => id === target.item.id)) return;
    this.aim(mainTarget);
    this.hint("the request has ended, or another client answered it");
  }

  /** Times on the screen go on only while something runs. */
  #tick(): void {
    const isRunning = this.isBusy || [...this.view.agents.values()].some(({ status }) => status === "running");
    if (isRunning) this.#ticker ??= setInterval(() => this.screen.changed(), TICK_MS);
    else {
      clearInterval(this.#ticker);
      this.#ticker = undefined;
    }
  }

  #liveRegion(size: { readonly columns: number; readonly rows: number }): LiveRegion {
    const { style, target, view, search } = this;
    const now = Date.now();
    const card = this.attention.card(view, requestOf(target));
    const facts = {
      isBusy: this.isBusy,
      now,
      vim: this.vim?.label,
      isWithoutSession: this.retry !== undefined,
      isStarting: this.session === undefined,
      isAsking: card !== undefined,
      isPopupOpen: this.popup.isOpen || search !== undefined,
      isElsewhere: target.kind !== "main",
      isCardFocused: this.attention.isFocused,
      hasDraft: !this.editor.isEmpty,
    };
    const ui: UiState = {
      prompt: search ?? { label: target.label, render: (columns, rows) => this.editor.render(columns, rows) },
      popup: search?.found ?? this.popup.entries,
      selected: search?.selected ?? this.popup.selected,
      card,
      status: { left: statusLeft(this.session?.view, facts), right: escText(facts) },
      hint: this.#hint?.text,
    };
    return liveRegion({ view, ui, style, size, now });
  }
}
