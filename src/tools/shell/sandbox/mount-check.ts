/**
 * Compares the mount table of a sandbox with the plan, inside it and before the command runs. Bubblewrap 0.8 takes
 * paths and turns even `/proc/self/fd/N` into a path before it mounts. So a command that swaps a folder for a link at
 * that moment could misdirect a mount. The kernel's mount table shows the true source and target of each.
 */
import { readFileSync } from "node:fs";
import { isInside } from "../../../lib/node/paths.ts";
import type { Mount } from "./mount.ts";

const REFUSAL = "The workspace changed while the sandbox was being set up. Nothing was run; try again.";

interface HostMount {
  readonly point: string;
  readonly root: string;
  readonly isReadOnly: boolean;
}

/**
 * Returns lines of bash for the start of the first script in the sandbox. `writable`: further mount points that
 * bubblewrap itself makes writable.
 */
export function mountCheck(mounts: readonly Mount[], writable: readonly string[]): string {
  const host = hostMounts();
  const lines = mounts.filter(({ unchecked }) => !unchecked).map((mount) => expectedLine(mount, host));
  const open = mounts.filter(({ kind }) => kind !== "ro-bind").map(({ path }) => path);
  // A folder is mounted together with the machine's mounts inside it.
  const within = host.map(({ point }) => point).filter((point) => isInside(point, open));
  const allowed = [...new Set([...open, ...within, ...writable])];
  return `${CHECK}__troupe_writable=${quote(` ${allowed.map(escaped).join(" ")} `)}
__troupe_expected=(${[...new Set(lines)].map(quote).join(" ")})
__troupe_mounts || { echo ${quote(REFUSAL)}; exit 125; }
set +f; unset -f __troupe_mounts; unset __troupe_writable __troupe_expected
`;
}

/** Fails when an expected mount is missing, or when a mount is writable that should not be. */
const CHECK = `
__troupe_mounts() {
  local IFS=$' \\t\\n' line lines seen=''
  set -f
  mapfile -t lines < /proc/self/mountinfo
  for line in "\${lines[@]}"; do
    set -- $line
    seen+=" $4 on $5 \${6%%,*} "$'\\n'
    if [[ $6 == rw* && $__troupe_writable != *" $5 "* && $5 != /dev/* ]]; then return 1; fi
  done
  for line in "\${__troupe_expected[@]}"; do [[ $seen == *"$line"* ]] || return 1; done
}
`;

/**
 * Returns "root on point rw" for a bind of a path onto itself; only the point for an empty file or folder. The kernel
 * never prints a space within a path, so no file name can pass for several words.
 */
function expectedLine({ kind, path }: Mount, host: readonly HostMount[]): string {
  if (kind !== "bind" && kind !== "ro-bind") return ` on ${escaped(path)} ${kind === "empty file" ? "ro" : "rw"} `;
  const above = host.findLast(({ point }) => isInside(path, [point]));
  const rest = path.slice(above?.point === "/" ? 0 : (above?.point.length ?? 0));
  const root = `${above?.root === "/" ? "" : (above?.root ?? "")}${rest}` || "/";
  return ` ${escaped(root)} on ${escaped(path)} ${kind === "bind" && !above?.isReadOnly ? "rw" : "ro"} `;
}

/** Returns the mounts of the machine, innermost last. */
function hostMounts(): HostMount[] {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").trimEnd().split("\n");
  const mounts = lines.map((line) => {
    const [, , , root = "", point = "", mode = ""] = line.split(" ");
    return { root: unescaped(root), point: unescaped(point), isReadOnly: /^ro\b/.test(mode) };
  });
  return mounts.sort((a, b) => a.point.length - b.point.length);
}

/** The kernel writes these four characters as octal numbers. */
const escaped = (path: string): string =>
  path.replace(/[ \t\n\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`);

const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
