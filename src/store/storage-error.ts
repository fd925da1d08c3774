import { TroupeError } from "../protocol/errors.ts";

/**
 * Converts an error of the operating system to a `TroupeError`. `action` completes "cannot …", as in "write the session
 * log".
 */
export function storageError(action: string, error: unknown): TroupeError {
  if (error instanceof TroupeError) return error;
  const code = errorCode(error) ?? "";
  const known = causes[code];
  const detail = error instanceof Error ? error.message : String(error);
  if (!known) return new TroupeError("storage", `Could not ${action}: ${detail}`, { cause: error });
  const path = error instanceof Error && "path" in error && typeof error.path === "string" ? `, at ${error.path}` : "";
  return new TroupeError("storage", `Could not ${action}: ${known.cause} (${code}${path}).`, {
    hint: known.hint,
    cause: error,
  });
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

const space = "Free some space. The session continues from the last saved event.";
const elsewhere = "choose another folder for sessions (TROUPE_HOME).";
const rights = `Check the owner and the permissions of the folder, or ${elsewhere}`;

const causes: Record<string, { cause: string; hint: string }> = {
  ENOSPC: { cause: "the disk is full", hint: space },
  EDQUOT: { cause: "the disk quota is used up", hint: space },
  EIO: { cause: "the disk reported an error", hint: "Check the disk. What was saved before can still be read." },
  EROFS: { cause: "the file system is read-only", hint: `Mount it writable, or ${elsewhere}` },
  ENOTDIR: { cause: "a part of the path is a file, not a folder", hint: `Move it away, or ${elsewhere}` },
  EACCES: { cause: "permission denied", hint: rights },
  EPERM: { cause: "operation not permitted", hint: rights },
  EMFILE: { cause: "too many files are open", hint: "Raise the limit of open files (ulimit -n), then try again." },
  ENFILE: { cause: "too many files are open on this machine", hint: "Close some programs, then try again." },
};

/** Returns a `catch` handler that throws the error as a storage error of this action. */
export const failTo =
  (action: string) =>
  (error: unknown): never => {
    throw storageError(action, error);
  };
