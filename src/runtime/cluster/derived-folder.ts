import { createHash } from "node:crypto";
import { join } from "node:path";

/** Returns the folder of what this machine derives from the sessions of a database. Each role sees other sessions, so each has its own. */
export function derivedFolder(home: string, url: string): string {
  const { username, host, pathname } = new URL(url);
  const key = createHash("sha256").update(`${username}@${host}${pathname}`).digest("hex").slice(0, 16);
  return join(home, "databases", key);
}
