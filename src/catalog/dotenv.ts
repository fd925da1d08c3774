/**
 * Values from a workspace's `.env` and `.env.local`, only for the commands that an agent runs there. Troupe itself, MCP
 * servers, hooks and git do not get them. They apply only in a trusted folder and as approved.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { childEnvironment } from "../lib/node/child-environment.ts";
import { readSmallFile } from "../lib/node/small-file.ts";
import type { PinnedItem } from "../lib/pinned-item.ts";
import { boundedNotices, type CatalogNotice } from "./catalog.ts";
import { isRefusedName, parseDotenv } from "./dotenv-parse.ts";
import type { Trust } from "./trust.ts";

export interface WorkspaceEnvironment {
  readonly values: Readonly<Record<string, string>>;
  readonly notices: readonly CatalogNotice[];
}

const FILES = [".env", ".env.local"];
const MAX_BYTES = 64 * 1024;

/**
 * Returns the values of approved files. `folder` is a real path. `secrets: "given"` includes names that look like keys and
 * passwords. Only the user's own settings may set it, because a model can be talked into leaking what a command can read.
 */
export function workspaceEnvironment(request: {
  folder: string;
  trust: Trust;
  secrets: "withheld" | "given";
}): WorkspaceEnvironment {
  const { folder, trust, secrets } = request;
  if (trust.state === "none") return { values: {}, notices: [] };
  const values = new Map<string, string>();
  const notices: CatalogNotice[] = [];
  for (const file of readFiles(folder)) {
    if ("notice" in file) {
      notices.push(file.notice);
      continue;
    }
    const verdict = trust.check(file.item);
    if (verdict !== "approved") {
      const why = verdict === "changed" ? "has changed since it was approved" : "was never approved";
      notices.push(remark(`${file.path} is not used: it ${why}. Approve it with: troupe trust`));
      continue;
    }
    const parsed = parseDotenv(file.text);
    for (const [name, { value, line }] of parsed.values) {
      if (isRefusedName(name)) notices.push(refusalNotice(`${file.path}:${line}`, name));
      else values.set(name, value);
    }
    notices.push(...parsed.problems.map(({ line, message }) => remark(`${file.path}:${line}: ${message}`)));
  }
  const all = Object.fromEntries(values);
  const given = secrets === "given" ? all : childEnvironment(all, { names: [...values.keys()] });
  const withheld = [...values.keys()].filter((name) => !Object.hasOwn(given, name));
  if (withheld.length > 0) notices.push(withholding(withheld));
  return { values: given, notices: boundedNotices(notices, join(folder, ".env")) };
}

type Found =
  | { readonly path: string; readonly text: string; readonly item: PinnedItem }
  | { readonly notice: CatalogNotice };

function readFiles(folder: string): Found[] {
  return FILES.flatMap((name): Found[] => {
    const path = join(folder, name);
    const file = readSmallFile(path, { maxBytes: MAX_BYTES, below: folder });
    if (file.kind === "missing") return [];
    if (file.kind === "refused") return [{ notice: remark(`${path} is not used: it ${file.reason}.`) }];
    const { text } = file;
    const digest = createHash("sha256").update(text).digest("hex");
    return [{ path, text, item: { kind: "environment", id: name, digest, shown: shownOf(text) } }];
  });
}

function shownOf(text: string): string {
  const { values } = parseDotenv(text);
  const names = [...values].map(([name, { value }]) =>
    isRefusedName(name) ? `${name} (never set from a file)` : `${name} (${value.length} characters)`,
  );
  return `for commands the agent runs:\n${names.join("\n") || "no values"}`;
}

const remark = (message: string): CatalogNotice => ({ kind: "environment-file", message });

function refusalNotice(location: string, name: string): CatalogNotice {
  return remark(`${location}: ${name} is ignored: it could change which programs run or where they connect.`);
}

function withholding(names: readonly string[]): CatalogNotice {
  return remark(
    `Not passed to commands, because they look like secrets: ${names.join(", ")}. To pass them, set sandbox.allowEnvironmentFiles in your own settings.`,
  );
}
