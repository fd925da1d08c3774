/** Stores approvals for the session and for a location. Denials are not stored here; they are rules. */
import * as fs from "node:fs";
import { dirname } from "node:path";
import { isObject, parseJson } from "../lib/json.ts";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import { TroupeError } from "../protocol/errors.ts";
import { Approval } from "./approvals.ts";

export interface Grants {
  readonly sessionApprovals: readonly Approval[];
  /** Approvals for this location, from this session or an earlier one. */
  readonly locationApprovals: readonly Approval[];
  /** Folders that tools may use in this location. */
  readonly allowedDirectories: readonly string[];
  approveForSession(approval: Approval): void;
  approveForLocation(approval: Approval): Promise<void>;
  allowDirectory(path: string): Promise<void>;
  resetSession(): void;
}

const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** `file` is `permissions-config.json` in the state root; `location` is the `locationKey` of the working directory. */
export function openGrants(options: { disk: Disk; file: string; location: string }): Grants {
  const { disk, file, location } = options;
  const stored = entryOf(readConfig(file), location);
  const session: Approval[] = [];
  const local = { approvals: knownApprovals(stored), directories: textList(stored.allowed_directories) };
  let writing: Promise<void> = Promise.resolve();

  /** Reads the file again before writing, to preserve entries that another process added. */
  function change(edit: (entry: Record<string, unknown>) => void): Promise<void> {
    const next = writing.then(async () => {
      const config = readConfig(file);
      const locations = isObject(config.locations) ? config.locations : {};
      const entry = { tool_approvals: [], allowed_directories: [], ...entryOf(config, location) };
      edit(entry);
      await disk.mkdir(dirname(file));
      const content = { ...config, locations: { ...locations, [location]: entry } };
      await replaceFile(disk, file, `${JSON.stringify(content, undefined, 2)}\n`);
    });
    writing = next.catch(() => undefined);
    return next;
  }

  return {
    sessionApprovals: session,
    locationApprovals: local.approvals,
    allowedDirectories: local.directories,
    approveForSession: (approval) => add(session, approval),
    async approveForLocation(approval) {
      await change((entry) => {
        const approvals = Array.isArray(entry.tool_approvals) ? [...entry.tool_approvals] : [];
        add(approvals, approval);
        entry.tool_approvals = approvals;
      });
      add(local.approvals, approval);
    },
    async allowDirectory(path) {
      await change((entry) => {
        entry.allowed_directories = [...new Set([...textList(entry.allowed_directories), path])];
      });
      add(local.directories, path);
    },
    resetSession: () => void session.splice(0),
  };
}

function readConfig(file: string): Record<string, unknown> {
  const stat = fs.statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return {};
  const repair = "Fix or delete it; until then nothing can be approved for a location";
  if (stat.size > MAX_FILE_BYTES)
    throw new TroupeError("configuration", `${file} is larger than ${MAX_FILE_BYTES} bytes. ${repair}.`);
  const parsed = parseJson(fs.readFileSync(file, "utf8"));
  if (!parsed.ok) throw new TroupeError("configuration", `${file} is not JSON: ${parsed.error}. ${repair}.`);
  if (!isObject(parsed.value))
    throw new TroupeError("configuration", `${file} does not contain a JSON object. ${repair}.`);
  return parsed.value;
}

function entryOf(config: Record<string, unknown>, location: string): Record<string, unknown> {
  const { locations } = config;
  if (!isObject(locations) || !Object.hasOwn(locations, location)) return {};
  const entry = locations[location];
  return isObject(entry) ? entry : {};
}

/** Entries of unknown kinds stay in the file and approve nothing. */
function knownApprovals(entry: Record<string, unknown>): Approval[] {
  const list = Array.isArray(entry.tool_approvals) ? entry.tool_approvals : [];
  return list.flatMap((item: unknown) => {
    const parsed = Approval.safeParse(item);
    return parsed.success ? [parsed.data] : [];
  });
}

function textList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function add<T>(list: T[], item: T): void {
  const text = JSON.stringify(sortKeys(item));
  if (!list.some((other) => JSON.stringify(sortKeys(other)) === text)) list.push(item);
}

/** Returns the value with sorted keys, so that equal values have equal text. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key])]),
  );
}
