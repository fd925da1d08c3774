import { isInside } from "../../lib/node/paths.ts";
import { ToolError } from "../tool-error.ts";
import type { ShellRequest, ShellsOptions } from "./shells.ts";

/** Linux limits one argument to 128 KiB. */
const MAX_COMMAND_BYTES = 100_000;
const ID = /^[A-Za-z0-9_.-]{1,64}$/;

/** Throws a `ToolError` when a shell that was started read-only is used for writing, or the reverse. */
export function requireSameView(shellId: string, started: View, wanted: View): void {
  if ((started.readOnly ?? false) === (wanted.readOnly ?? false)) return;
  const when = started.readOnly ? "while planning, so it cannot write" : "before plan mode was on, so it can write";
  throw new ToolError(`Shell ${shellId} was started ${when}. Choose another shellId.`);
}

type View = Pick<ShellRequest, "readOnly">;

/** Throws a `ToolError` for a request that can never work. */
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

/**
 * Returns the request without roots in the state of the program. Tools may read there, so such folders are among the
 * roots of a session, but no command may change them. Throws a `ToolError` for a command that starts there.
 */
export function withoutState(request: ShellRequest, { folder, isState }: ShellsOptions): ShellRequest {
  const isOwn = (path: string): boolean => isInside(path, [folder]) || (isState?.(path) ?? false);
  if (isOwn(request.cwd)) {
    throw new ToolError(
      `Commands do not run in ${request.cwd}: the program stores its state there. Choose another folder.`,
    );
  }
  return { ...request, roots: request.roots.filter((root) => !isOwn(root)) };
}
