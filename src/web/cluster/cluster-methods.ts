/** The methods of the dashboard for the cluster of a database. They call what `troupe cluster` calls. */
import { clip, fenceText, visible } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { permissionText } from "../../protocol/permission-text.ts";
import { abortWork, answerRequest, type Cluster, retryWork } from "../../runtime/cluster/cluster.ts";
import { askToDrain } from "../../runtime/cluster/draining.ts";
import { readOverview } from "../../runtime/cluster/overview.ts";
import { answerOf, type Decision, openRequests, type RequestRow } from "../../runtime/cluster/requests.ts";
import type { ClusterRequest } from "../api.ts";
import { type OwnMethod, type Params, requireSessionId, requireText } from "../calls.ts";
import type { Connection } from "./connection.ts";

/** The state is read at most once in this time, however many tabs ask. */
const FRESH_MS = 900;

export function clusterMethods(connection: Connection): Readonly<Record<string, OwnMethod>> {
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
    "web.cluster": overview,
    "web.retryWork": (params) => change((cluster) => retryWork(cluster, requireText(params, "work"))),
    "web.cancelWork": (params) => change((cluster) => abortWork(cluster, requireText(params, "work"))),
    "web.drain": (params) => change((cluster) => drain(cluster, params)),
    "web.answerRequest": (params) => change((cluster) => answer(cluster, params)),
  };
}

async function drain({ database }: Cluster, params: Params): Promise<void> {
  const name = requireText(params, "worker");
  const found = await askToDrain(database, { name, isAsked: params.isAsked === true });
  if (found.length === 0) throw new TroupeError("usage", "This worker no longer exists.");
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
        text: fenceText(visible(clip(question, MAX_TEXT))),
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
        text: "The program that submitted the job answers it.",
      };
  }
}
