/** Canvases that clients show beside the conversation; see `../../clients/canvases.ts`. */
import * as z from "zod";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const name = () => z.string().min(1).max(200);
const input = () => z.json().optional();

export const canvasMethods: MethodTable = {
  "session.canvas.list": sessionMethod(nothing, (_, { hosted }) => ({ canvases: hosted.clients.canvases.declared })),
  "session.canvas.listOpen": sessionMethod(nothing, (_, { hosted }) => ({
    openCanvases: hosted.clients.canvases.open,
  })),
  "session.canvas.open": sessionMethod(
    () => ({ canvasId: name(), extensionId: name().optional(), instanceId: name(), input: input() }),
    (request, { hosted, signal }) => hosted.clients.canvases.show(request, signal),
  ),
  "session.canvas.close": sessionMethod(
    () => ({ instanceId: name() }),
    ({ instanceId }, { hosted, signal }) => hosted.clients.canvases.close(instanceId, signal),
  ),
  "session.canvas.action.invoke": sessionMethod(
    () => ({ instanceId: name(), actionName: name(), input: input() }),
    async (request, { hosted, signal }) => ({ result: await hosted.clients.canvases.act(request, signal) }),
  ),
};
