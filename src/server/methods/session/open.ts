/** Opens a session: a new one, or one found by its id, a prefix of its id, or its location. */
import * as z from "zod";
import { TroupeError } from "../../../protocol/errors.ts";
import { openWithToken } from "../../clients/github-token.ts";
import { createParams } from "../../sessions/session-options.ts";
import { type Call, type MethodTable, method } from "../method.ts";
import { Filter, fits } from "./sessions.ts";

const openParams = () => {
  const options = createParams().extend({ name: z.string().optional() }).optional();
  return z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("create"), options }),
    z.object({ kind: z.literal("resume"), sessionId: z.string().min(1), options, resume: z.boolean().optional() }),
    z.object({ kind: z.literal("resumeLast"), context: z.object({ ...Filter.shape }).optional(), options }),
    z.object({ kind: z.literal("attach"), sessionId: z.string().min(1) }),
    z.object({ kind: z.enum(["remote", "cloud", "handoff"]) }),
  ]);
};
type OpenParams = z.infer<ReturnType<typeof openParams>>;
type Options = Extract<OpenParams, { kind: "create" }>["options"];

export const openMethods: MethodTable = {
  "sessions.open": method(openParams, (params, call) => open(params, call)),
};

const notFound = { status: "not_found" };

async function open(params: OpenParams, call: Call): Promise<object> {
  const { hub, server } = call;
  const { store } = server.runtime;
  switch (params.kind) {
    case "create":
      return create(params.options, call);
    case "resume": {
      const ids = new Set([...(await store.ids()), ...(hub.isOpen(params.sessionId) ? [params.sessionId] : [])]);
      const found = ids.has(params.sessionId)
        ? [params.sessionId]
        : [...ids].filter((id) => id.startsWith(params.sessionId));
      const [sessionId] = found.length === 1 ? found : [];
      return sessionId === undefined
        ? notFound
        : resume(sessionId, { ...params.options, disableResume: params.resume === false }, call);
    }
    case "resumeLast": {
      const { cwd } = params.context ?? {};
      const kept = await store.list();
      const last = kept.find((summary) => fits(summary, cwd === undefined ? undefined : { cwd }));
      return last ? resume(last.sessionId, params.options, call) : notFound;
    }
    case "attach":
      return hub.isOpen(params.sessionId) ? resume(params.sessionId, { disableResume: true }, call) : notFound;
    default:
      throw new TroupeError(
        "usage",
        `A session cannot be opened with '${params.kind}': this server has only local sessions.`,
      );
  }
}

async function create({ name, ...options }: NonNullable<Options> = {}, call: Call): Promise<object> {
  const { hub, connection } = call;
  const sessionId = options.sessionId ?? crypto.randomUUID();
  await openWithToken(call, { ...options, sessionId }, (params) => hub.create(connection, params));
  if (name !== undefined && name.trim() !== "") await hub.require(sessionId).session.record.rename(name.trim());
  return { status: "created", sessionId, startupPrompts: [] };
}

async function resume(
  sessionId: string,
  options: (NonNullable<Options> & { disableResume?: boolean }) | undefined,
  call: Call,
): Promise<object> {
  const { hub, connection } = call;
  await openWithToken(call, { ...options, sessionId }, (params) => hub.resume(connection, params));
  return { status: "resumed", sessionId, startupPrompts: [] };
}
