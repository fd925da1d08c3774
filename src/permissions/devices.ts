/** Devices that take what is written to them and keep no file. */
const SINKS = new Set(["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"]);
/** Names of open descriptors. To open one for writing opens the file behind it again, even if it was open for reading. */
const DESCRIPTORS = /^\/(?:dev\/(?:std(?:in|out|err)$|fd\/)|proc\/)/;

/** Whether writing to this path changes no file, unless a file was opened as its descriptor: see `withReopened`. */
export const isSink = (path: string): boolean => SINKS.has(path);

/** Whether reading or writing this path reaches no file of its own. */
export const isDevice = (path: string, { write }: { readonly write: boolean }): boolean =>
  isSink(path) || (path === "/dev/stdin" && !write);

/**
 * Counts every file that is read as written, if a descriptor is opened for writing (`echo x 2< file > /dev/stderr`), or if
 * `exec` keeps descriptors open, which a later command of the same shell may open for writing.
 */
export function withReopened<R extends { readonly target: string; readonly write: boolean }>(
  redirections: readonly R[],
  commands: readonly { readonly identifier: string }[],
): readonly R[] {
  const reopens = redirections.some(({ target, write }) => write && DESCRIPTORS.test(target));
  const keepsOpen = commands.some(({ identifier }) => identifier === "exec");
  return reopens || keepsOpen ? redirections.map((one) => ({ ...one, write: true })) : redirections;
}
