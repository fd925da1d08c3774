/** Every key of the prompt and of a replay, once: the decoder, the `?` overlay and docs/how-to/terminal.md use this table. */

export type Action =
  | "send"
  | "newline"
  | "queue"
  | "back"
  | "interrupt"
  | "exit"
  | "mode"
  | "history-search"
  | "history-older"
  | "history-newer"
  | "recall"
  | "output"
  | "agents"
  | "agents-left"
  | "editor"
  | "background"
  | "stop-agents"
  | "stash"
  | "redraw"
  | "suspend"
  | "attend"
  | "paste-image"
  | "help"
  | "replay-back"
  | "replay-forward"
  | "replay-turn-back"
  | "replay-turn-forward"
  | "replay-start"
  | "replay-live"
  | "replay-fork";

export interface KeyBinding {
  readonly action: Action;
  /** Names as pi-tui gives them; two keys with a blank between them are pressed one after the other. */
  readonly keys: readonly string[];
  readonly help: string;
  /** It has a meaning in the tree of agents and in the run of an agent, not in the prompt. */
  readonly where?: "replay";
}

export const keyTable: readonly KeyBinding[] = [
  { action: "send", keys: ["enter"], help: "send; steers the agent while it works" },
  {
    action: "newline",
    keys: ["shift+enter", "ctrl+j", "alt+enter"],
    help: "new line; so does a backslash before Enter",
  },
  { action: "queue", keys: ["tab"], help: "queue the prompt while the agent works; completes after / and @" },
  { action: "recall", keys: ["up"], help: "on an empty prompt: the newest queued prompt, else history" },
  { action: "history-older", keys: ["ctrl+p"], help: "older prompt" },
  { action: "history-newer", keys: ["ctrl+n"], help: "newer prompt" },
  { action: "history-search", keys: ["ctrl+r"], help: "search the history of prompts" },
  {
    action: "back",
    keys: ["escape"],
    help: "close, else leave the card, else stop the answer; never stops a background agent. Twice: clear the prompt, or rewind",
  },
  { action: "interrupt", keys: ["ctrl+c"], help: "clear the prompt, else interrupt; twice: exit" },
  { action: "exit", keys: ["ctrl+d"], help: "exit, on an empty prompt" },
  { action: "mode", keys: ["shift+tab"], help: "next mode: interactive, plan, autopilot" },
  { action: "attend", keys: ["ctrl+a"], help: "focus the card that needs an answer; else go to the start of the line" },
  { action: "output", keys: ["ctrl+o"], help: "show the whole output of the last tool calls" },
  { action: "agents", keys: ["ctrl+t"], help: "tree of agents" },
  { action: "agents-left", keys: ["left"], help: "on an empty prompt: tree of agents" },
  {
    action: "background",
    keys: ["ctrl+b"],
    help: "move the agent that the call waits for to the background; else cursor left",
  },
  { action: "stop-agents", keys: ["ctrl+x ctrl+k"], help: "stop all background agents; asks once more" },
  { action: "editor", keys: ["ctrl+g", "ctrl+x ctrl+e"], help: "edit the prompt in $EDITOR" },
  { action: "stash", keys: ["ctrl+s"], help: "stash the draft, or restore it" },
  { action: "paste-image", keys: ["ctrl+v", "alt+v"], help: "attach the image in the clipboard" },
  { action: "redraw", keys: ["ctrl+l"], help: "redraw the prompt" },
  { action: "suspend", keys: ["ctrl+z"], help: "suspend troupe; fg resumes it" },
  { action: "help", keys: ["?"], help: "on an empty prompt: show this list" },
  { action: "replay-back", keys: ["["], where: "replay", help: "in the tree or a run: back to the previous change" },
  {
    action: "replay-forward",
    keys: ["]"],
    where: "replay",
    help: "replay: to the next change; live after the last one",
  },
  {
    action: "replay-turn-back",
    keys: ["{"],
    where: "replay",
    help: "in a run: back to the previous turn; in the tree: back to the moment when an agent last started, became idle or ended",
  },
  { action: "replay-turn-forward", keys: ["}"], where: "replay", help: "replay: the same forward" },
  { action: "replay-start", keys: ["<"], where: "replay", help: "in the tree or a run: to its first event" },
  { action: "replay-live", keys: ["L", ">"], where: "replay", help: "replay: back to live" },
  {
    action: "replay-fork",
    keys: ["f"],
    where: "replay",
    help: "replay: fork the session at the shown event; asks once more",
  },
];

/** Keys of the tree and of runs that cannot be changed. `f` of the tree is not among them: it has no meaning in a replay. */
export const fixedOverlayKeys: readonly string[] = [
  ...["q", "escape", "ctrl+c", "ctrl+o", "ctrl+t", "left", "right", "up", "k", "down", "j", "enter"],
  ...["pageUp", "b", "pageDown", "space", "g", "home", "G", "end", "/", "n", "m", "a", "w", "x"],
];

const CHORD_MS = 2_000;

/** Finds the action of a key, also of two keys one after the other. */
export class Keymap {
  readonly #byKey = new Map<string, Action>();
  readonly #prefixes = new Set<string>();
  #prefix: { readonly key: string; readonly at: number } | undefined;

  /** Takes the keys of the prompt, or those of a replay. */
  constructor(table: readonly KeyBinding[] = keyTable, where?: KeyBinding["where"]) {
    for (const { action, keys } of table.filter((binding) => binding.where === where)) {
      for (const key of keys) {
        this.#byKey.set(key, action);
        const [first, second] = key.split(" ");
        if (first !== undefined && second !== undefined) this.#prefixes.add(first);
      }
    }
  }

  /** "wait": the first key of two was pressed. */
  find(id: string | undefined, now: number): Action | "wait" | undefined {
    if (id === undefined) return undefined;
    const prefix = this.#prefix;
    this.#prefix = undefined;
    if (prefix && now - prefix.at < CHORD_MS) {
      const action = this.#byKey.get(`${prefix.key} ${id}`);
      if (action) return action;
    }
    if (this.#prefixes.has(id)) {
      this.#prefix = { key: id, at: now };
      return "wait";
    }
    return this.#byKey.get(id);
  }
}
