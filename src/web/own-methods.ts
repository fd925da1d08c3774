/** The methods that only the dashboard has. */
import { isAbsolute, join } from "node:path";
import { defined } from "../lib/defined.ts";
import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { blameLine } from "../runtime/sessions/blame.ts";
import type { Boot, ModelPrice, SessionHit } from "./api.ts";
import { type OwnMethod, type Params, requireSessionId, requireText } from "./calls.ts";
import type { WebCluster } from "./cluster/cluster.ts";
import { Knowledge } from "./knowledge.ts";
import type { OpenSessions } from "./open-sessions.ts";
import { SessionFiles } from "./session-files.ts";
import type { SessionLists } from "./session-lists.ts";
import type { SessionLocator } from "./session-locator.ts";
import type { SignIns } from "./sign-ins.ts";

export interface OwnParts {
  readonly runtime: Runtime;
  readonly rows: SessionLists;
  readonly openSessions: OpenSessions;
  readonly locator: SessionLocator;
  readonly signIns: SignIns;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly version: string;
  readonly cluster: WebCluster | undefined;
  readonly disk: Disk;
  readonly stamp: Stamp;
}

type Methods = Readonly<Record<string, OwnMethod>>;

const MAX_HITS = 50;
const MAX_EVENTS = 20_000;

export function ownMethods(parts: OwnParts): Methods {
  return { ...listMethods(parts), ...fileMethods(parts), ...knowledgeMethods(parts) };
}

function listMethods({ runtime, rows, openSessions, locator, signIns, cwd, version, cluster }: OwnParts): Methods {
  const database = cluster?.name;
  return {
    "web.boot": async (): Promise<Boot> => ({ version, home: runtime.home, cwd, ...defined({ database }) }),
    "web.sessions": () => rows.rows(),
    "web.create": async (params) => {
      const { cwd: folder, model } = params;
      const prompt = requireText(params, "prompt");
      const sessionId = await openSessions.create({
        cwd: typeof folder === "string" && folder !== "" ? folder : undefined,
        model: typeof model === "string" && model !== "" ? model : undefined,
      });
      await openSessions.request(sessionId, "session.send", { prompt });
      return { sessionId };
    },
    "web.search": async (params): Promise<readonly SessionHit[]> => {
      const query = { words: requireText(params, "words"), limit: MAX_HITS };
      const all = await Promise.all([runtime.past.search(query), cluster?.sessions.search(query) ?? []]);
      // Each place has its best hits first.
      const longest = Math.max(...all.map(({ length }) => length));
      const found = Array.from({ length: longest }, (_, index) => all.flatMap((hits) => hits[index] ?? [])).flat();
      return found.slice(0, MAX_HITS).map(({ sessionId, timestamp, source, snippet, title = "" }) => {
        return { sessionId, name: title, at: timestamp, kind: source, text: snippet };
      });
    },
    /** The events of a session as its log reads now, up to a limit. */
    "web.events": async (params) => {
      const events: SessionEvent[] = [];
      for await (const event of locator.events(requireSessionId(params.sessionId))) {
        events.push(event);
        if (events.length >= MAX_EVENTS) break;
      }
      return events;
    },
    /** The rows of the todo table. Nobody opens a session only to read them. */
    "web.todos": async (params) => {
      const sessionId = requireSessionId(params.sessionId);
      if (!(await openSessions.join(sessionId))) return { rows: [] };
      return openSessions.request(sessionId, "session.plan.readSqlTodos", {});
    },
    "web.signIn": (params) => signIns.begin(requireSessionId(params.sessionId), requireText(params, "server")),
    "web.leaveSignIn": async (params) =>
      signIns.leave(requireSessionId(params.sessionId), requireText(params, "server")),
    "web.prices": async (): Promise<readonly ModelPrice[]> => {
      const models = await runtime.models.list();
      return models.flatMap(({ ref, name, price }) => (price ? [{ ref, name, price }] : []));
    },
  };
}

function fileMethods(parts: OwnParts): Methods {
  const { runtime, locator, disk, stamp } = parts;
  const files = new SessionFiles(parts);
  const of = async (params: Params): Promise<string> => {
    const sessionId = requireSessionId(params.sessionId);
    await locator.requireHere(sessionId);
    return sessionId;
  };
  const treeOf = (params: Params) => ({ taskId: requireText(params, "taskId"), isFork: params.isFork === true });
  return {
    "web.changes": async (params) => files.changes(await of(params)),
    "web.undo": async (params) =>
      files.undo(await of(params), requireText(params, "toolCallId"), params.force === true),
    "web.worktrees": async (params) => files.worktrees(await of(params)),
    "web.merge": async (params) => files.merge(await of(params), treeOf(params)),
    "web.discard": async (params) => files.discard(await of(params), treeOf(params), params.force === true),
    "web.fork": async (params) => files.fork(await of(params), requireText(params, "toEventId")),
    "web.blame": (params) => {
      const path = requireText(params, "path");
      if (!isAbsolute(path)) throw new TroupeError("usage", "The path must be absolute.");
      return blameLine(path, Number(params.line), { stateRoot: runtime.home, store: runtime.store, disk, stamp });
    },
  };
}

function knowledgeMethods({ runtime, environment, disk, stamp, cwd }: OwnParts): Methods {
  const knowledge = new Knowledge({ home: runtime.home, environment, disk, stamp });
  const folderOf = ({ cwd: folder }: Params): string =>
    join(typeof folder === "string" && folder !== "" ? folder : cwd);
  return {
    "web.knowledge": ({ until, ...params }) =>
      knowledge.read(folderOf(params), typeof until === "string" ? until : undefined),
    "web.acceptFact": (params) => knowledge.accept(folderOf(params), requireText(params, "id")),
    "web.removeFact": (params) => knowledge.remove(folderOf(params), requireText(params, "id")),
    "web.restoreBoard": (params) => knowledge.restoreBoard(folderOf(params), Number(params.change)),
  };
}
