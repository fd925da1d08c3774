/**
 * Tool definitions that the user approved. A server may change the descriptions of its tools at any time. The approved
 * ones are stored here, so that a change is detected before the next call. The last listing of a server is stored too,
 * so that a session can offer its tools without starting it.
 */
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { isObject } from "../../../lib/json.ts";
import { type Disk, replaceFile } from "../../../lib/node/disk.ts";
import { withFileLock } from "../../../lib/node/file-lock.ts";
import { plural } from "../../../lib/text.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { McpServerConfig, McpToolDefinition } from "../server.ts";
import { serverKey } from "./config-pin.ts";
import {
  definitionOf,
  type KeptDefinition,
  keptDefinition,
  noPins,
  PINS_FILE,
  type PinnedServer,
  type PinsFile,
  readPins,
} from "./pins-file.ts";

export interface McpPins {
  /** Returns the last listing of the server; the approved definitions when there is none. */
  definitions(config: McpServerConfig): readonly McpToolDefinition[] | undefined;
  /**
   * "new": no tool of this name was approved. "changed": another definition of this name was approved, so it must not
   * be called.
   */
  check(config: McpServerConfig, definition: McpToolDefinition): "ok" | "changed" | "new";
  /** Returns the approved definitions, to show what changed. */
  approved(config: McpServerConfig): readonly McpToolDefinition[];
  /** Approves these definitions, and no other tool of the server. */
  approve(config: McpServerConfig, definitions: readonly McpToolDefinition[]): Promise<void>;
  /** Stores a listing for the next session without approving it. Does nothing when it is already stored. */
  remember(config: McpServerConfig, definitions: readonly McpToolDefinition[]): Promise<void>;
  /** Records that the server ignored the version probe. It is not probed again for a week. */
  probeIgnored(config: McpServerConfig): Promise<void>;
  ignoresProbe(config: McpServerConfig): boolean;
  forget(config: McpServerConfig): Promise<void>;
}

export interface PinsOptions {
  readonly disk: Disk;
  readonly stateRoot: string;
  readonly onNotice?: (message: string) => void;
}

const MAX_SERVER_BYTES = 1024 * 1024;
const MAX_SERVERS = 200;
const PROBE_AGAIN_MS = 7 * 24 * 60 * 60 * 1000;

export async function openPins(options: PinsOptions): Promise<McpPins> {
  const { serverOf, change } = await openFile(options);
  const check: McpPins["check"] = (config, definition) => {
    const pinned = serverOf(config)?.approved.find((one) => one.definition.name === definition.name);
    if (pinned === undefined) return "new";
    return pinned.hash === definitionHash(definition) ? "ok" : "changed";
  };
  return {
    check,
    definitions(config) {
      const server = serverOf(config);
      const known = server?.listed ?? server?.approved.map(({ definition }) => definition);
      return known?.map((definition) => definitionOf(config.name, definition));
    },
    approved: (config) =>
      serverOf(config)?.approved.map(({ definition }) => definitionOf(config.name, definition)) ?? [],
    async approve(config, definitions) {
      if (definitions.every((definition) => check(config, definition) === "ok")) return;
      await change(config, (server) => ({ ...server, approved: withApproved(server, definitions) }));
    },
    async remember(config, definitions) {
      const listed = definitions.map(keptDefinition);
      if (sameListing(serverOf(config)?.listed, listed) || sizeOf(listed) > MAX_SERVER_BYTES) return;
      await change(config, (server) => ({ ...server, approved: server?.approved ?? [], listed }));
    },
    async probeIgnored(config) {
      await change(config, (server) => ({ approved: [], ...server, probeIgnoredAt: Date.now() }));
    },
    ignoresProbe(config) {
      const at = serverOf(config)?.probeIgnoredAt;
      return at !== undefined && Date.now() - at < PROBE_AGAIN_MS;
    },
    async forget(config) {
      if (serverOf(config) !== undefined) await change(config, () => undefined);
    },
  };
}

interface OpenedFile {
  serverOf(config: McpServerConfig): PinnedServer | undefined;
  change(config: McpServerConfig, edit: (server: PinnedServer | undefined) => PinnedServer | undefined): Promise<void>;
}

async function openFile({ disk, stateRoot, onNotice = () => undefined }: PinsOptions): Promise<OpenedFile> {
  const path = join(stateRoot, PINS_FILE);
  let seen: { stamp: string; pins: PinsFile } | undefined;

  /** Another process may have approved something: reads the file again whenever it changed. */
  const current = (): PinsFile => {
    const stamp = stampOf(path);
    if (seen?.stamp !== stamp) {
      const read = readPins(path);
      seen = { stamp, pins: read.kind === "pins" ? read.pins : noPins() };
    }
    return seen.pins;
  };

  if (readPins(path).kind === "damaged")
    await withFileLock({ path, disk, Failure: TroupeError }, () => setDamagedAside(path, disk, onNotice));
  return {
    serverOf(config) {
      const { servers } = current();
      const key = serverKey(config);
      return Object.hasOwn(servers, key) ? servers[key] : undefined;
    },
    change: (config, edit) =>
      withFileLock({ path, disk, Failure: TroupeError }, async () => {
        await setDamagedAside(path, disk, onNotice);
        const pins = current();
        const key = serverKey(config);
        const { [key]: before, ...others } = pins.servers;
        const after = edit(before);
        const servers = newest(after === undefined ? others : { ...others, [key]: after });
        await replaceFile(disk, path, `${JSON.stringify({ ...pins, servers })}\n`);
        seen = undefined;
      }),
  };
}

function withApproved(server: PinnedServer | undefined, definitions: readonly McpToolDefinition[]) {
  const names = new Set(definitions.map(({ name }) => name));
  const others = server?.approved.filter(({ definition }) => !names.has(definition.name)) ?? [];
  const added = definitions.map((definition) => ({
    hash: definitionHash(definition),
    definition: keptDefinition(definition),
  }));
  const approved = [...others, ...added];
  if (sizeOf(approved) > MAX_SERVER_BYTES) {
    const [first] = definitions;
    const message = `The tool definitions of ${first?.server} are larger than ${MAX_SERVER_BYTES} bytes together.`;
    throw new TroupeError("limit", message, { hint: "Use fewer of its tools: name them in tools of its entry." });
  }
  return approved;
}

/** Returns a hash of everything that a model or the user sees of a tool. */
export function definitionHash(definition: Omit<McpToolDefinition, "server">): string {
  const { name, title, description, inputSchema, annotations } = definition;
  const shown = [name, title ?? null, description, sortKeys(inputSchema, 0), sortKeys(annotations ?? null, 0)];
  return createHash("sha256").update(JSON.stringify(shown)).digest("hex");
}

const MAX_SORTED_DEPTH = 64;

/** Sorts keys, so that another key order is not a change. */
function sortKeys(value: unknown, depth: number): unknown {
  if (depth > MAX_SORTED_DEPTH) return JSON.stringify(value);
  if (Array.isArray(value)) return value.map((item) => sortKeys(item, depth + 1));
  if (!isObject(value)) return value;
  return Object.keys(value)
    .sort()
    .map((key) => [key, sortKeys(value[key], depth + 1)]);
}

const sizeOf = (value: object): number => Buffer.byteLength(JSON.stringify(value));

function sameListing(one: readonly KeptDefinition[] | undefined, other: readonly KeptDefinition[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Drops the least recently used servers first, approved ones last. */
function newest(servers: PinsFile["servers"]): PinsFile["servers"] {
  const all = Object.entries(servers);
  const spare = all.length - MAX_SERVERS;
  if (spare <= 0) return servers;
  const unapproved = all.filter(([, { approved }]) => approved.length === 0);
  const dropped = new Set([...unapproved, ...all.filter((one) => !unapproved.includes(one))].slice(0, spare));
  return Object.fromEntries(all.filter((one) => !dropped.has(one)));
}

function stampOf(path: string): string {
  const stat = fs.statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? "missing" : `${stat.ino}-${stat.mtimeNs}-${stat.size}`;
}

async function setDamagedAside(path: string, disk: Disk, onNotice: (message: string) => void): Promise<void> {
  const read = readPins(path);
  if (read.kind !== "damaged") return;
  const aside = `${path}.damaged-${Date.now()}`;
  await disk.rename(path, aside);
  onNotice(`${path} ${read.reason}. It was renamed to ${aside}; no MCP tool is approved now.`);
}

/** Returns "2 tools, 1 changed, 1 new" for a list of servers. */
export function summaryOf(pins: McpPins, config: McpServerConfig): string | undefined {
  const definitions = pins.definitions(config);
  if (definitions === undefined) return undefined;
  const count = (state: "changed" | "new"): number =>
    definitions.filter((definition) => pins.check(config, definition) === state).length;
  const parts = [plural(definitions.length, "tool")];
  for (const state of ["changed", "new"] as const) if (count(state) > 0) parts.push(`${count(state)} ${state}`);
  return parts.join(", ");
}
