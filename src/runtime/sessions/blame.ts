/** Finds the origin of a line: the session, agent, prompt, call and approval that wrote it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../checkpoints/checkpoint-tree.ts";
import { Checkpoints, type StoredChange } from "../../checkpoints/checkpoints.ts";
import { StoredTexts } from "../../checkpoints/stored-texts.ts";
import { isObject } from "../../lib/json.ts";
import type { Disk } from "../../lib/node/disk.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventOf, SessionEvent } from "../../protocol/event.ts";
import type { Store } from "../../store/store.ts";
import { undoSeal } from "../undo-seal.ts";

export interface BlameParts {
  readonly stateRoot: string;
  readonly store: Store;
  readonly disk: Disk;
  readonly stamp: Stamp;
}

export interface Blame {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** Undefined when no recorded change wrote the line: it was there before, or someone else wrote it. */
  readonly origin: BlameOrigin | undefined;
}

interface BlameOrigin {
  readonly sessionId: string;
  readonly time: string;
  readonly toolCallId: string;
  readonly tool: string | undefined;
  /** The command, if the call ran one. */
  readonly command: string | undefined;
  /** Why the origin is only probable. Undefined when the recorded contents show it. */
  readonly doubt: string | undefined;
  /** Empty for the main agent. */
  readonly agentId: string;
  readonly agent: string;
  /** The message that the agent worked on. */
  readonly prompt: string | undefined;
  /** The decision about the call, who made it, and why. */
  readonly approval: string | undefined;
  /** The store of remembered facts that the session was given, and their number. */
  readonly facts: string | undefined;
  /** The agent's words before the call. */
  readonly intent: string | undefined;
}

/** Sessions whose changes are looked at, the last used first. */
const MAX_SESSIONS = 200;
const MAX_TEXT = 300;

/** Throws if the file has no such line. `path` is absolute. */
export async function blameLine(path: string, line: number, parts: BlameParts): Promise<Blame> {
  const content = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new TroupeError("usage", `${path} cannot be read.`, { cause });
  });
  const text = content.split("\n")[line - 1];
  if (text === undefined || line < 1) throw new TroupeError("usage", `${path} has no line ${line}.`);
  const changes = await changesOf(path, parts);
  const found = await findChange(changes, content, line, parts.store);
  const origin = found && (await changeOrigin(found, parts));
  return { path, line, text, origin };
}

interface SessionChange {
  readonly sessionId: string;
  readonly change: StoredChange;
  readonly texts: StoredTexts;
}

/** Returns all recorded changes of the file, oldest first. */
async function changesOf(path: string, { stateRoot, store, disk, stamp }: BlameParts): Promise<SessionChange[]> {
  const all: SessionChange[] = [];
  for (const sessionId of (await store.ids()).slice(0, MAX_SESSIONS)) {
    const directory = join(stateRoot, "session-state", sessionId);
    const list = await readFile(join(directory, "checkpoints", "changes.jsonl"), "utf8").catch(() => "");
    if (!list.includes(JSON.stringify(path)) && !list.includes('"kind":"tree"')) continue;
    const checkpoints = new Checkpoints({ directory, disk, stamp, seal: undoSeal({ stateRoot, disk }) });
    const texts = new StoredTexts(checkpoints);
    const both = [...(await checkpoints.changes()), ...(await checkpoints.creations())];
    const own = both.filter((change) => change.path === path);
    for (const change of own) all.push({ sessionId, change, texts });
  }
  return all.sort((one, other) => one.change.time.localeCompare(other.change.time));
}

/** Follows the line back through the changes until one of them wrote it. */
async function findChange(
  changes: readonly SessionChange[],
  content: string,
  line: number,
  store: Store,
): Promise<Found | undefined> {
  const { diffLines } = await import("diff");
  /** The line's number in the older text; undefined if it is not in there. */
  const before = (older: string, newer: string, at: number): number | undefined => {
    let [oldLine, newLine] = [1, 1];
    for (const { added, removed, count = 0 } of diffLines(older, newer, { timeout: 2_000 }) ?? []) {
      if (removed) oldLine += count;
      else if (added) {
        if (at >= newLine && at < newLine + count) return undefined;
        newLine += count;
      } else {
        if (at >= newLine && at < newLine + count) return oldLine + (at - newLine);
        newLine += count;
        oldLine += count;
      }
    }
    return undefined;
  };
  let at: number | undefined = line;
  let newer = content;
  for (const one of [...changes].reverse()) {
    const { change, texts } = one;
    const older = await texts.of(change.before, change.path);
    if (older === undefined) return undefined;
    const after = await textAfter(one, { older, newer, changes, store });
    if (after !== undefined && after !== newer) {
      // Someone else changed the file in between.
      at = before(after, newer, at);
      if (at === undefined) return undefined;
      newer = after;
    }
    const former: number | undefined = before(older, newer, at);
    if (former === undefined) return { ...one, doubt: after === undefined ? doubtOf(change) : undefined };
    at = former;
    newer = older;
  }
  return undefined;
}

/** A change that wrote the line. */
interface Found extends SessionChange {
  readonly doubt: string | undefined;
}

function doubtOf({ after }: StoredChange): string {
  return after === undefined
    ? "other programs may have changed the file while the command ran"
    : "the file was changed again later, and its content in between is not recorded";
}

interface Around {
  readonly older: string;
  /** The text that followed, as far as is known. */
  readonly newer: string;
  readonly changes: readonly SessionChange[];
  readonly store: Store;
}

/**
 * Returns the text that the change left, or undefined if it is not known. The text after a session's last change of a file
 * is stored nowhere: if someone changed the file since, the diff in the call's result gives it, and the hash confirms it.
 */
async function textAfter({ sessionId, change, texts }: SessionChange, around: Around): Promise<string | undefined> {
  const { after, path, toolCallId } = change;
  if (!after) return undefined;
  const { older, newer, changes, store } = around;
  const isIt = (text: string): boolean => after.kind === "file" && sha256(Buffer.from(text)) === after.hash;
  if (isIt(newer)) return newer;
  // Another session may have stored it before its own change.
  for (const one of new Set([texts, ...changes.map((other) => other.texts)])) {
    const kept = await one.of(after, path);
    if (kept !== undefined || after.kind !== "file") return kept;
  }
  const { applyPatch, parsePatch } = await import("diff");
  for await (const event of store.events(sessionId)) {
    if (event.type !== "tool.execution_complete" || event.data.toolCallId !== toolCallId) continue;
    try {
      for (const patch of parsePatch(event.data.result?.detailedContent ?? "")) {
        const text = applyPatch(older, patch);
        if (text !== false && isIt(text)) return text;
      }
    } catch {
      // The result has no diff, or only a part of it.
    }
  }
  return undefined;
}

async function changeOrigin({ sessionId, change, doubt }: Found, { store }: BlameParts): Promise<BlameOrigin> {
  const { toolCallId, time, turn } = change;
  const facts: { -readonly [K in keyof BlameOrigin]: BlameOrigin[K] } = {
    sessionId,
    time,
    toolCallId,
    tool: undefined,
    command: undefined,
    doubt,
    agentId: "",
    agent: "main agent",
    prompt: undefined,
    approval: undefined,
    facts: undefined,
    intent: undefined,
  };
  const agents = new Map<string, EventOf<"troupe.task_created">["data"]>();
  const requests = new Map<string, string>();
  for await (const event of store.events(sessionId)) {
    if (requestsCall(event, toolCallId)) {
      // Some models use the same ids again: the last call before the change counts.
      if (event.timestamp > time) break;
      facts.approval = undefined;
    }
    addOrigin(facts, event, { toolCallId, turn, agents, requests });
  }
  const task = agents.get(facts.agentId);
  if (task) {
    facts.agent = task.agentDisplayName;
    facts.prompt = clip(task.prompt, MAX_TEXT);
  }
  return facts;
}

function requestsCall(event: SessionEvent, toolCallId: string): event is EventOf<"assistant.message"> {
  return (
    event.type === "assistant.message" &&
    event.data.toolRequests?.some((call) => call.toolCallId === toolCallId) === true
  );
}

function addOrigin(
  facts: { -readonly [K in keyof BlameOrigin]: BlameOrigin[K] },
  event: SessionEvent,
  known: {
    readonly toolCallId: string;
    readonly turn: string;
    readonly agents: Map<string, EventOf<"troupe.task_created">["data"]>;
    readonly requests: Map<string, string>;
  },
): void {
  const { toolCallId, turn, agents, requests } = known;
  switch (event.type) {
    case "troupe.task_created":
      agents.set(event.data.taskId, event.data);
      return;
    case "troupe.memory_recalled":
      if (event.data.count > 0) facts.facts = `${event.data.count} (${event.data.store})`;
      return;
    case "user.message":
      if (event.data.interactionId === turn && event.agentId === undefined)
        facts.prompt = clip(event.data.content, MAX_TEXT);
      return;
    case "assistant.message":
      if (requestsCall(event, toolCallId)) facts.intent = clip(event.data.content, MAX_TEXT) || undefined;
      return;
    case "tool.execution_start":
      if (event.data.toolCallId !== toolCallId) return;
      facts.tool = event.data.toolName;
      facts.command = commandOf(event.data.arguments);
      facts.agentId = event.agentId ?? "";
      return;
    case "troupe.permission":
      if (event.data.toolCallId === toolCallId && facts.approval === undefined)
        facts.approval = `${event.data.decision} by ${event.data.by}: ${event.data.reason}`;
      return;
    case "permission.requested": {
      const asked = event.data.permissionRequest.toolCallId;
      if (asked !== undefined) requests.set(event.data.requestId, asked);
      return;
    }
    case "permission.completed":
      if ((event.data.toolCallId ?? requests.get(event.data.requestId)) === toolCallId)
        facts.approval = `${event.data.result.kind} by the user`;
      return;
    default:
  }
}

function commandOf(given: unknown): string | undefined {
  return isObject(given) && typeof given.command === "string" ? clip(given.command, MAX_TEXT) : undefined;
}
