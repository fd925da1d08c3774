/** Things that a command can leave where a program expects a plain file of its own. */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Stands in a file outside, which nobody may be shown. */
export const SECRET = "OUTSIDE-CANARY-7f3a";

export interface Outside {
  readonly secret: string;
  readonly pipe: string;
}

export function makeOutside(folder: string): Outside {
  const outside = { secret: join(folder, "secret"), pipe: join(folder, "pipe") };
  mkdirSync(folder, { recursive: true });
  writeFileSync(outside.secret, SECRET);
  execFileSync("mkfifo", [outside.pipe]);
  return outside;
}

/** Each makes something at the path. */
export const hostileThings: Readonly<Record<string, (path: string, outside: Outside) => void>> = {
  "a link to a file outside": (path, { secret }) => symlinkSync(secret, path),
  "a link to a link to a file outside": (path, { secret }) => {
    symlinkSync(secret, `${path}.step`);
    symlinkSync(`${path}.step`, path);
  },
  "a link to a pipe": (path, { pipe }) => symlinkSync(pipe, path),
  "a link to an endless device": (path) => symlinkSync("/dev/zero", path),
  "a link to itself": (path) => symlinkSync(path, path),
  "a pipe": (path) => void execFileSync("mkfifo", [path]),
  "a folder": (path) => mkdirSync(path),
  "an endless device": (path) => makeDevice(path),
  "a second name of a file outside": (path, { secret }) => linkSync(secret, path),
  "a huge file": (path) => {
    writeFileSync(path, "");
    truncateSync(path, 200 * 1024 ** 3);
  },
};

/** Only root can make one; for others a link to one has to do. */
function makeDevice(path: string): void {
  try {
    execFileSync("mknod", [path, "c", "1", "5"], { stdio: "ignore" });
  } catch {
    symlinkSync("/dev/zero", path);
  }
}
