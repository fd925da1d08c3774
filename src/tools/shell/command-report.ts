/** Reports the state of a shell's commands. */
import { defined } from "../../lib/defined.ts";
import { exitLine } from "./reply-text.ts";
import { type Command, hasMore, type Shell } from "./shell.ts";
import type { FinishedCommand, ShellSummary } from "./shells.ts";

export const isNews = (command: Command): boolean =>
  command.background && !command.reported && command.exitCode !== undefined;

export function finishedCommand(shell: Shell, { text, description, exitCode = 0 }: Command): FinishedCommand {
  return { shellId: shell.id, mode: "attached", command: text, description, exitCode };
}

export function takeText(command: Command): string {
  const { text, next } = command.output.textFrom(command.readUntil, { ended: command.exitCode !== undefined });
  command.readUntil = next;
  return text;
}

export function takeWithEnd(command: Command): string {
  const text = takeText(command);
  command.reported ||= command.exitCode !== undefined;
  return command.exitCode === undefined ? text : `${exitLine(text, command.exitCode)}\n`;
}

export const unreadText = (shell: Shell): string => shell.commands.filter(hasMore).map(takeText).join("");

export function summary(shell: Shell): ShellSummary {
  const last = shell.commands.at(-1);
  const exitCode = last?.exitCode;
  const idle = shell.ended ? "exited" : "idle";
  return {
    shellId: shell.id,
    command: last?.text ?? "",
    mode: "attached",
    pid: shell.process?.pid ?? 0,
    state: exitCode === undefined ? "running" : idle,
    unread: shell.commands.some(({ readUntil, output }) => readUntil < output.size),
    ...defined({ exitCode }),
  };
}
