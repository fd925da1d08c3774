/**
 * `workspace.yaml`: the summary for session lists, so that they need not read logs. Values are written as JSON, which
 * is valid YAML and cheap to read. A file edited by hand is read with a YAML parser.
 */

import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { defined } from "../lib/defined.ts";
import { isObject } from "../lib/json.ts";
import { firstCharacters } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { decodeLine, NEWLINE } from "./log/line.ts";
import { visibleEvents } from "./log/rewound.ts";
import type { SessionSummary } from "./store.ts";

export function encodeSummary(summary: SessionSummary): string {
  const fields = {
    id: summary.sessionId,
    cwd: summary.cwd,
    git_root: summary.gitRoot,
    repository: summary.repository,
    branch: summary.branch,
    name: summary.name,
    user_named: summary.name !== undefined,
    created_at: summary.createdAt,
    updated_at: summary.updatedAt,
    title: summary.title,
    model: summary.model,
    turns: summary.turns,
    cost: summary.costUsd,
    detached_from: summary.detachedFrom,
  };
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  return present.map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`).join("");
}

/** Returns `undefined` when the file is missing or invalid. */
export async function readSummary(path: string, sessionId: string): Promise<SessionSummary | undefined> {
  try {
    return await parseSummary(readFileSync(path, "utf8"), sessionId);
  } catch {
    return undefined;
  }
}

/** Returns `undefined` or throws when the text is invalid. */
export async function parseSummary(text: string, sessionId: string): Promise<SessionSummary | undefined> {
  return toSummary(parseOwn(text) ?? (await parseYaml(text)), sessionId);
}

const HEAD_BYTES = 64 * 1024;
const TITLE_CHARACTERS = 80;

/** Summarises the beginning of the log. `turns` counts only the turns that start there. */
export function summariseHead(path: string, sessionId: string, changed: Date): SessionSummary {
  return summaryOfEvents(visibleEvents(readHead(path)).events, sessionId, changed.toISOString());
}

export function summaryOfEvents(events: readonly SessionEvent[], sessionId: string, updatedAt: string): SessionSummary {
  const start = events.find((event) => event.type === "session.start")?.data;
  const prompt = events.find((event) => event.type === "user.message")?.data.content;
  const named = events.findLast((event) => event.type === "troupe.session_named")?.data.name;
  const context = start?.context;
  const parent = start?.detachedFromSpawningParentSessionId;
  return {
    sessionId,
    cwd: context?.cwd ?? "",
    ...defined({ gitRoot: context?.gitRoot, repository: context?.repository, branch: context?.branch, name: named }),
    ...(prompt !== undefined && { title: firstCharacters(prompt.trim().replace(/\s+/g, " "), TITLE_CHARACTERS) }),
    ...defined({ model: start?.selectedModel }),
    createdAt: start?.startTime ?? events[0]?.timestamp ?? updatedAt,
    updatedAt,
    turns: events.filter((event) => event.type === "assistant.turn_start").length,
    ...defined({ detachedFrom: parent }),
  };
}

function readHead(path: string): SessionEvent[] {
  const buffer = Buffer.allocUnsafe(HEAD_BYTES);
  const fd = openSync(path, "r");
  let filled = 0;
  try {
    filled = readSync(fd, buffer, 0, HEAD_BYTES, 0);
  } finally {
    closeSync(fd);
  }
  const head = buffer.subarray(0, filled);
  const events: SessionEvent[] = [];
  let start = 0;
  for (let end = head.indexOf(NEWLINE); end !== -1; end = head.indexOf(NEWLINE, start)) {
    const decoded = decodeLine(head.subarray(start, end));
    if (decoded.kind !== "bad") events.push(decoded.event);
    start = end + 1;
  }
  return events;
}

function parseOwn(text: string): Record<string, unknown> | undefined {
  const fields: Record<string, unknown> = {};
  try {
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const separator = line.indexOf(": ");
      fields[line.slice(0, separator)] = JSON.parse(line.slice(separator + 2));
    }
    return fields;
  } catch {
    return undefined;
  }
}

async function parseYaml(text: string): Promise<unknown> {
  const { parse } = await import("yaml");
  return parse(text, { maxAliasCount: 0 });
}

function toSummary(value: unknown, sessionId: string): SessionSummary | undefined {
  if (!isObject(value)) return undefined;
  const text = (key: string): string | undefined => {
    const found = value[key];
    return typeof found === "string" ? found : undefined;
  };
  const optional = {
    gitRoot: "git_root",
    repository: "repository",
    branch: "branch",
    name: "name",
    title: "title",
    model: "model",
    detachedFrom: "detached_from",
  };
  const cwd = text("cwd");
  const createdAt = text("created_at");
  const updatedAt = text("updated_at");
  if (cwd === undefined || createdAt === undefined || updatedAt === undefined) return undefined;
  const present = Object.entries(optional).flatMap(([name, key]) => {
    const found = text(key);
    return found === undefined ? [] : [[name, found]];
  });
  const { turns, cost } = value;
  return {
    sessionId,
    cwd,
    ...(Object.fromEntries(present) as Pick<SessionSummary, keyof typeof optional>),
    createdAt,
    updatedAt,
    turns: typeof turns === "number" ? turns : 0,
    ...((typeof cost === "number" || cost === null) && { costUsd: cost }),
  };
}
