/** Commands that the terminal runs itself. A command of the same name with arguments that it does not take goes to the server. */
import type { Host } from "../host.ts";
import type { CommandEntry } from "../input/completion.ts";
import { themeNames } from "../screen/style.ts";
import { openTree } from "./agent-overlays.ts";
import { showCost } from "./cost.ts";
import { openHelp, openTranscript } from "./overlays.ts";
import { forkSession, openAgents, openModels, openRewind, openSessions, openThemes } from "./pickers.ts";
import { copyAnswer, exportTranscript, showDiff } from "./reports.ts";

export interface LocalCommand extends CommandEntry {
  /** Whether these arguments are for the terminal. */
  takes(args: string): boolean;
  run(app: Host, args: string): void | Promise<void>;
}

const alone = (args: string): boolean => args === "";
const always = (): boolean => true;

export const localCommands: readonly LocalCommand[] = [
  { name: "help", description: "Show keys and commands", takes: alone, run: openHelp },
  { name: "model", description: "Choose the model", hint: "[name]", takes: alone, run: openModels },
  { name: "agent", description: "Choose the agent that leads", hint: "[name]", takes: alone, run: openAgents },
  { name: "resume", description: "Open another session", takes: alone, run: openSessions },
  {
    name: "rewind",
    description: "Take the conversation back to a message, or take that back",
    hint: "[redo]",
    takes: (args) => args === "" || args === "redo",
    run: openRewind,
  },
  { name: "fork", description: "Go on in a copy of this session", takes: alone, run: (app) => forkSession(app) },
  { name: "tasks", description: "Show the tree of agents", takes: alone, run: openTree },
  { name: "diff", description: "Show what the session changed in files", takes: alone, run: showDiff },
  { name: "cost", description: "Show tokens and cost per agent", takes: alone, run: showCost },
  { name: "transcript", description: "Read the whole conversation", takes: alone, run: openTranscript },
  {
    name: "copy",
    description: "Copy the last answer, or the last block of code in it",
    hint: "[code]",
    takes: (args) => args === "" || args === "code",
    run: copyAnswer,
  },
  {
    name: "export",
    description: "Write the conversation to a Markdown file",
    hint: "[file]",
    takes: always,
    run: exportTranscript,
  },
  {
    name: "theme",
    description: `Choose the colours: ${themeNames.join(", ")}`,
    hint: "[name]",
    takes: always,
    run: (app, args) => {
      const theme = themeNames.find((name) => name === args);
      if (!theme) return openThemes(app);
      app.setTheme(theme);
      return app.prefer({ theme });
    },
  },
  {
    name: "vim",
    description: "Turn vim keys in the prompt on or off",
    hint: "[on|off]",
    takes: always,
    run: (app, args) => {
      const isOn = args === "on" || (args !== "off" && !app.vim);
      app.setVim(isOn);
      app.hint(isOn ? "vim keys are on: Esc for normal mode" : "vim keys are off");
      return app.prefer({ vim: isOn });
    },
  },
  { name: "exit", description: "Leave; the session can be resumed", takes: alone, run: (app) => app.exit() },
];
