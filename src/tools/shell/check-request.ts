import { ToolError } from "../tool.ts";
import type { ShellRequest } from "./shells.ts";

/** Linux gives one argument 128 KiB. */
const MAX_COMMAND_BYTES = 100_000;
const ID = /^[A-Za-z0-9_.-]{1,64}$/;

/** Throws a `ToolError` for what could never work. */
export function checkRequest({ command, shellId }: ShellRequest): void {
  if (command.trim() === "") throw new ToolError("The command is empty.");
  if (command.includes("\0")) throw new ToolError("A command cannot contain a NUL character.");
  if (Buffer.byteLength(command) > MAX_COMMAND_BYTES) {
    throw new ToolError(`A command can have at most ${MAX_COMMAND_BYTES} bytes. Put it into a script file.`);
  }
  if (shellId !== undefined && !ID.test(shellId)) {
    throw new ToolError("A shellId consists of at most 64 letters, digits, dots, dashes and underscores.");
  }
}
