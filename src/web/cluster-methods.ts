/** The methods of the dashboard for the cluster of a database. They call what `troupe cluster` calls. */
import { clip, fenced, visible } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { permissionText } from "../protocol/permission-text.ts";
import {
  abortWork,
  answerRequest,
  type Cluster,
  openCluster,
  retryWork,
  wordErrors,
} from "../runtime/cluster/cluster.ts";
import { askToDrain } from "../runtime/cluster/draining.ts";
import { readOverview } from "../runtime/cluster/overview.ts";
import { RemoteSessions } from "../runtime/cluster/remote-sessions.ts";
import { answerOf, type Decision, openRequests, type RequestRow } from "../runtime/cluster/requests.ts";
import { checkDatabaseUrl } from "../store/postgres/database-errors.ts";
import type { ClusterRequest } from "./api.ts";
import { type OwnMethod, type Params, requireSessionId, requireText } from "./calls.ts";

export interface ClusterMethods {
  /** Host and database, without user and password. */
  readonly name: string;
  readonly methods: Readonly<Record<string, OwnMethod>>;
  close(): Promise<void>;
}

/** The state is read at most once in this time, however many tabs ask. */
const FRESH_MS = 900;

/** Connects at the first call. Throws if this is no address of a database. */
export function clusterMethods(url: string, home: string): ClusterMethods {
  checkDatabaseUrl(url);
  const { host, pathname } = new URL(url);
  const connection = new Connection(url);
  let recent: { readonly at: number; readonly result: Promise<unknown> } | undefined;
  const overview = (): Promise<unknown> => {
    if (recent && performance.now() - recent.at < FRESH_MS) return recent.result;
    const result = connection.use(async ({ database }) => {
      const { requests, ...rest } = await readOverview(database);
      return { ...rest, requests: requests.map(worded) };
    });
    recent = { at: performance.now(), result };
    return result;
  };
  /** After it, the next look shows what it changed. */
  const change = <T>(work: (cluster: Cluster) => Promise<T>): Promise<T> =>
    connection.use(work).finally(() => {
      recent = undefined;
    });
  return {
    name: `${host}${decodeURIComponent(pathname)}`,
    methods: {
      "web.cluster": overview,
      "web.transcript": (params) =>
        connection.use((cluster) => eventsOf(cluster, home, requireSessionId(params.sessionId))),
      "web.retryWork": (params) => change((cluster) => retryWork(cluster, requireText(params, "work"))),
      "web.cancelWork": (params) => change((cluster) => abortWork(cluster, requireText(params, "work"))),
      "web.drain": (params) => change((cluster) => drain(cluster, params)),
      "web.answerRequest": (params) => change((cluster) => answer(cluster, params)),
    },
    close: () => connection.close(),
  };
}

/** A connection that is opened at its first use, and again after that failed. */
class Connection {
  readonly #url: string;
  #opening: Promise<Cluster> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  async use<T>(work: (cluster: Cluster) => Promise<T>): Promise<T> {
    this.#opening ??= openCluster({ url: this.#url });
    const cluster = await this.#opening.catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return wordErrors(this.#url, () => work(cluster));
  }

  async close(): Promise<void> {
    const cluster = await this.#opening?.catch(() => undefined);
    await cluster?.close();
  }
}

async function drain({ database }: Cluster, params: Params): Promise<void> {
  const name = requireText(params, "worker");
  const found = await askToDrain(database, { name, isAsked: params.isAsked === true });
  if (found.length === 0) throw new TroupeError("usage", "There is no such worker any more.");
}

/** Returns false if somebody else was faster. */
async function answer(cluster: Cluster, params: Params): Promise<boolean> {
  const sessionId = requireSessionId(params.sessionId);
  const requestId = requireText(params, "id");
  const request = (await openRequests(cluster.database, sessionId)).find(({ id }) => id === requestId);
  if (!request) return false;
  const { kind } = request;
  return answerRequest(cluster, { sessionId, requestId, kind, answer: answerOf(kind, decisionOf(params)) });
}

function decisionOf(params: Params): Decision {
  const text = typeof params.text === "string" ? params.text.trim() : "";
  switch (params.decision) {
    case "allow":
      return { kind: "allow" };
    case "deny":
      return { kind: "deny", ...(text !== "" && { reason: text }) };
    case "text":
      return { kind: "text", text: requireText({ text }, "text"), isChoice: params.isChoice === true };
    default:
      throw new TroupeError("usage", "The request has no decision.");
  }
}

const MAX_EVENTS = 20_000;

/** Returns the events of a session as its log reads now, up to a limit. Takes no session from its worker. */
async function eventsOf(cluster: Cluster, home: string, sessionId: string): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = [];
  for await (const event of new RemoteSessions({ url: "", home }, cluster).store.events(sessionId)) {
    events.push(event);
    if (events.length >= MAX_EVENTS) break;
  }
  return events;
}

const MAX_TITLE = 200;
const MAX_TEXT = 20_000;

function worded({ id, sessionId, data }: RequestRow): ClusterRequest {
  return { id, sessionId, choices: [], allowFreeform: false, ...wordsOf(data) };
}

type Words = Pick<ClusterRequest, "kind" | "title" | "text"> & Partial<ClusterRequest>;

function wordsOf(data: RequestRow["data"]): Words {
  switch (data.kind) {
    case "permission": {
      const { title, text } = permissionText(data.permissionRequest);
      return { kind: "permission", title, text };
    }
    case "user_input": {
      const { question, choices = [], allowFreeform = true } = data;
      return {
        kind: "question",
        title: "Question",
        text: fenced(visible(clip(question, MAX_TEXT))),
        choices,
        allowFreeform,
      };
    }
    case "exit_plan_mode": {
      const { summary, planContent } = data;
      return { kind: "plan", title: clip(`Plan: ${summary}`, MAX_TITLE), text: clip(planContent || summary, MAX_TEXT) };
    }
    default:
      return {
        kind: "other",
        title: data.kind.replaceAll("_", " "),
        text: "The program that submitted the work answers it.",
      };
  }
}
