/** Text about a shell for the model. */
import { clip, plural } from "../../lib/text.ts";
import type { ShellReply, ShellSummary } from "./shells.ts";

const MAX_COMMAND_CHARACTERS = 120;

function replyText(reply: ShellReply): string {
  switch (reply.state) {
    case "exited":
      return exitLine(reply.output, reply.exitCode);
    case "running":
      return withLine(reply.output, `<still running with shellId: ${reply.shellId}>`);
    case "stopped":
      return withLine(reply.output, `<shell ${reply.shellId} was stopped>`);
    case "detached": {
      const about = `running detached with shellId: ${reply.shellId}, pid: ${reply.pid}, log: ${reply.log}`;
      return withLine(reply.output, `<${about}>`);
    }
  }
}

/** Returns the result of a call about a shell: its text, and the exit code when the command has ended. */
export function replyResult(reply: ShellReply): { readonly content: string; readonly exitCode?: number } {
  return { content: replyText(reply), ...(reply.state === "exited" && { exitCode: reply.exitCode }) };
}

export function exitLine(output: string, exitCode: number): string {
  return withLine(output, `<exited with exit code ${exitCode}>`);
}

export function listText(shells: readonly ShellSummary[]): string {
  return shells.length === 0 ? "No shells." : shells.map(summaryLine).join("\n");
}

function summaryLine(shell: ShellSummary): string {
  const exit = shell.exitCode === undefined ? "" : ` (exit code ${shell.exitCode})`;
  const facts = [`${shell.state}${exit}`, shell.mode, `pid ${shell.pid}`, ...(shell.unread ? ["unread output"] : [])];
  return `${shell.shellId}: ${facts.join(", ")}: ${clip(shell.command.replaceAll("\n", " "), MAX_COMMAND_CHARACTERS)}`;
}

/** For a command that continues after its caller stopped waiting. */
export function wentOnText(reply: ShellReply, waitedSeconds: number): string {
  const waited = `still running after ${plural(waitedSeconds, "second")} with shellId: ${reply.shellId}`;
  return withLine(reply.output, `<${waited}; use read_bash for more output or stop_bash to end it>`);
}

function withLine(output: string, line: string): string {
  return output === "" || output.endsWith("\n") ? output + line : `${output}\n${line}`;
}
