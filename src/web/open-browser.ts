/**
 * Opens the user's browser. All users of a machine can read the arguments of its programs, so the browser gets a file of
 * the user that leads to the address with the code, not the address.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Disk, writeNewFile } from "../lib/node/disk.ts";

export interface OpenOptions {
  readonly home: string;
  readonly disk: Disk;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** By then the browser has read the file. */
const KEEP_MS = 60_000;

/** A failure does no harm: the address is printed. Returns a function that removes the file. */
export async function openBrowser(address: string, options: OpenOptions): Promise<() => Promise<void>> {
  const { home, disk, environment } = options;
  const path = join(home, "web", `open-${randomBytes(12).toString("hex")}.html`);
  const remove = (): Promise<void> => disk.remove(path).catch(() => undefined);
  try {
    await disk.mkdir(join(home, "web"));
    await writeNewFile(disk, path, [Buffer.from(pageTo(address))]);
  } catch {
    await remove();
    return remove;
  }
  const [program, ...args] = opener(path);
  const child = spawn(program, args, { stdio: "ignore", detached: true, env: { ...environment } });
  child.on("error", () => undefined);
  child.unref();
  const timer = setTimeout(() => void remove(), KEEP_MS).unref();
  return () => {
    clearTimeout(timer);
    return remove();
  };
}

function opener(path: string): readonly [string, ...string[]] {
  if (process.platform === "darwin") return ["open", path];
  if (process.platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler", path];
  return ["xdg-open", path];
}

function pageTo(address: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>troupe</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${address}">
<p><a href="${address}">Open the dashboard</a></p>
</html>
`;
}
