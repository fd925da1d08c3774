/** Edits the user's `mcp-config.json` one entry at a time; everything else in it is preserved. */
import { join } from "node:path";
import { isObject, jsonErrorPosition, parseJson } from "../../../lib/json.ts";
import { type Disk, replaceFile } from "../../../lib/node/disk.ts";
import { withFileLock } from "../../../lib/node/file-lock.ts";
import { readSmallFile } from "../../../lib/node/small-file.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { readEntry } from "./config-entry.ts";
import { MAX_CONFIG_BYTES, USER_FILE } from "./config-files.ts";

export interface UserServers {
  readonly file: string;
  /** Returns the entries as written, valid or not. */
  entries(): Readonly<Record<string, unknown>>;
  /** Throws a usage error that names the field when the entry is invalid. */
  set(name: string, entry: object, how: "add" | "update" | "either"): Promise<void>;
  /** Returns false when there is no entry of this name. */
  remove(name: string): Promise<boolean>;
  /** Also applies to servers that are configured elsewhere. */
  setEnabled(names: readonly string[], enabled: boolean): Promise<void>;
}

type Content = Record<string, unknown>;

export function userServers({ disk, stateRoot }: { disk: Disk; stateRoot: string }): UserServers {
  const file = join(stateRoot, USER_FILE);
  const change = (edit: (content: Content, servers: Content) => Content) =>
    withFileLock({ path: file, disk, Failure: TroupeError }, async () => {
      const content = contentOf(file);
      const next = edit(content, serversOf(content, file));
      await replaceFile(disk, file, `${JSON.stringify(next, undefined, 2)}\n`);
    });
  return {
    file,
    entries: () => serversOf(contentOf(file), file),
    async set(name, entry, how) {
      const read = readEntry(name, entry, { scope: "user", source: file, folder: "/" });
      if (read.kind === "refused") throw unusable(name, read.notice);
      await change((content, servers) => {
        const isThere = Object.hasOwn(servers, name);
        if (how === "add" && isThere) throw alreadyThere(name);
        if (how === "update" && !isThere) throw new TroupeError("usage", `There is no MCP server ${name} in ${file}.`);
        return withServers(content, { ...servers, [name]: entry });
      });
    },
    async remove(name) {
      if (!Object.hasOwn(serversOf(contentOf(file), file), name)) return false;
      await change((content, { [name]: _, ...servers }) => {
        const { disabledMcpServers, ...rest } = withServers(content, servers);
        const disabled = namesIn(disabledMcpServers).filter((other) => other !== name);
        return disabled.length > 0 ? { ...rest, disabledMcpServers: disabled } : rest;
      });
      return true;
    },
    setEnabled: (names, enabled) =>
      change((content, servers) => {
        const { disabledMcpServers, ...rest } = content;
        const others = namesIn(disabledMcpServers).filter((name) => !names.includes(name));
        const disabled = enabled ? others : [...others, ...names];
        const next = disabled.length > 0 ? { ...rest, disabledMcpServers: disabled } : rest;
        return enabled ? withServers(next, switchedOn(servers, names)) : next;
      }),
  };
}

/**
 * Removes the `disabled` and `enabled` fields of entries: enabling a server must undo an entry that disables itself.
 */
function switchedOn(servers: Content, names: readonly string[]): Content {
  const entries = Object.entries(servers).map(([name, entry]) => {
    if (!names.includes(name) || !isObject(entry)) return [name, entry];
    const { disabled: _, enabled: __, ...rest } = entry;
    return [name, rest];
  });
  return Object.fromEntries(entries);
}

function contentOf(file: string): Content {
  const read = readSmallFile(file, { maxBytes: MAX_CONFIG_BYTES });
  if (read.kind === "missing") return {};
  const json = read.kind === "text" ? parseJson(read.text) : undefined;
  const value: unknown = json?.ok ? json.value : undefined;
  if (isObject(value)) return value;
  const reason = read.kind === "refused" ? read.reason : `is not a JSON object${jsonErrorPosition(read.text)}`;
  throw new TroupeError("configuration", `${file} ${reason}.`, { hint: "Fix or remove it. Nothing was changed." });
}

function serversOf(content: Content, file: string): Content {
  const servers = content.mcpServers ?? content.servers ?? {};
  if (isObject(servers)) return servers;
  throw new TroupeError("configuration", `${file}: mcpServers is not an object.`, {
    hint: "Fix or remove it. Nothing was changed.",
  });
}

const withServers = (content: Content, servers: Content): Content => {
  const key = content.mcpServers === undefined && content.servers !== undefined ? "servers" : "mcpServers";
  return content[key] === undefined && Object.keys(servers).length === 0 ? content : { ...content, [key]: servers };
};

const namesIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];

function unusable(name: string, { field, message }: { field?: string; message: string }): TroupeError {
  return new TroupeError(
    "usage",
    `The server ${JSON.stringify(name)} cannot be used: ${field ? `${field}: ` : ""}${message}.`,
  );
}

const alreadyThere = (name: string): TroupeError =>
  new TroupeError("usage", `The server ${name} already exists.`, { hint: `To replace it: troupe mcp remove ${name}.` });
