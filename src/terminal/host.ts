/** The interface of the terminal that its parts use. `App` implements it. */
import type { Client } from "../sdk/client.ts";
import type { AttentionItem, QueuedMessage, View } from "../view/view.ts";
import type { Attention } from "./attention.ts";
import type { PromptEditor } from "./input/editor.ts";
import type { PromptHistory } from "./input/history.ts";
import type { HistorySearch } from "./input/history-search.ts";
import type { PromptImages } from "./input/images.ts";
import type { Action, KeyBinding } from "./input/key-table.ts";
import type { Popup } from "./input/popup.ts";
import type { Vim } from "./input/vim.ts";
import type { Notices } from "./notices.ts";
import type { Overlay } from "./overlays/overlay.ts";
import type { Target } from "./prompt-target.ts";
import type { Screen } from "./screen/screen.ts";
import type { Style, ThemeName } from "./screen/style.ts";
import type { TerminalSession } from "./session.ts";
import type { Tty } from "./tty.ts";

export interface HostOptions {
  readonly tty: Tty;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly version: string;
}

/** Actions that keys and cards start. */
export interface Commands {
  send(how: "steer" | "queue"): void;
  interrupt(): void;
  recall(message: QueuedMessage): Promise<void>;
  background(): boolean;
  act(action: Action, how: { isAgain: boolean }): boolean;
  openAgent(agentId: string): void;
  showKeys(): void;
  rewind(): Promise<void>;
}

export interface Host {
  readonly options: HostOptions;
  readonly screen: Screen;
  readonly editor: PromptEditor;
  readonly history: PromptHistory;
  readonly attention: Attention;
  readonly notices: Notices;
  readonly popup: Popup;
  readonly images: PromptImages;
  readonly commands: Commands;
  readonly session: TerminalSession | undefined;
  readonly client: Client | undefined;
  readonly style: Style;
  readonly overlay: Overlay | undefined;
  readonly isBusy: boolean;
  /** The view of the session; an empty one before it is open. */
  readonly view: View;
  target: Target;
  /** Drafts of messages to agents, by the ids of the agents. */
  readonly agentDrafts: Map<string, string>;
  search: HistorySearch | undefined;
  /** Set when the session could not be opened: tries once more. */
  retry: (() => Promise<void>) | undefined;
  /** Output of `!` commands that goes along with the next prompt. */
  shellOutput: string[];
  /** Writes logical lines above the live region. */
  commit(lines: readonly string[]): void;
  /** Shows a word on the status line for a moment. */
  hint(text: string): void;
  fail(error: unknown): void;
  /** Chooses what the prompt is for; the draft of the prompt is put aside meanwhile. */
  aim(target: Target): void;
  /** Asks a question of the terminal itself. Resolves with the index of the choice. */
  ask(about: Pick<AttentionItem, "title" | "text" | "choices">): Promise<number>;
  /** Calls a method of the session. Rejects while no session is open. */
  call<T = unknown>(method: string, params?: Readonly<Record<string, unknown>>): Promise<T>;
  /** Leaves the session and opens another one. */
  switchTo(sessionId: string): Promise<void>;
  openOverlay(overlay: Overlay): void;
  closeOverlay(): void;
  setTheme(theme: ThemeName): void;
  /** The keys of the prompt, those of the user included. */
  readonly keyTable: readonly KeyBinding[];
  readonly vim: Vim | undefined;
  setVim(isOn: boolean): void;
  /** Stores choices for the terminal. */
  prefer(changes: { readonly theme?: ThemeName; readonly vim?: boolean }): Promise<void>;
  exit(): void;
}
