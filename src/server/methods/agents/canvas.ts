/** Canvases that clients show beside the conversation; see `../../clients/canvases.ts`. */
import * as z from "zod";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const name = () => z.string().min(1).max(200);
const input = () => z.json().optional();

export const canvasMethods: MethodTable = {
  "session.canvas.list": sessionMethod(nothing, (_, { live }) => ({ canvases: live.clients.canvases.declared })),
  "session.canvas.listOpen": sessionMethod(nothing, (_, { live }) => ({ openCanvases: live.clients.canvases.open })),
  "session.canvas.open": sessionMethod(
    () => ({ canvasId: name(), extensionId: name().optional(), instanceId: name(), input: input() }),
    (request, { live, signal }) => live.clients.canvases.show(request, signal),
  ),
  "session.canvas.close": sessionMethod(
    () => ({ instanceId: name() }),
    ({ instanceId }, { live, signal }) => live.clients.canvases.close(instanceId, signal),
  ),
  "session.canvas.action.invoke": sessionMethod(
    () => ({ instanceId: name(), actionName: name(), input: input() }),
    async (request, { live, signal }) => ({ result: await live.clients.canvases.act(request, signal) }),
  ),
};
