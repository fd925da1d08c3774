/** Features that this server does not have: responses that a client can handle. */
import * as z from "zod";
import { TroupeError } from "../../../protocol/errors.ts";
import { type MethodTable, method, noParams, nothing, sessionMethod } from "../method.ts";

const off = { status: { state: "off" } };
const local = { synced: false };
const anything = () => z.looseObject({});

export const remoteMethods: MethodTable = {
  "sessions.getRemoteControlStatus": method(noParams, () => off),
  "sessions.setRemoteControlSteering": method(anything, () => off),
  "sessions.stopRemoteControl": method(anything, () => ({ ...off, stopped: false })),
  "sessions.transferRemoteControl": method(anything, () => ({ ...off, transferred: false })),
  "sessions.startRemoteControl": method(anything, () => {
    throw new TroupeError("usage", "Sessions of this server cannot be controlled from another machine.");
  }),
  "sessions.connect": method(
    () => z.object({ sessionId: z.string() }),
    ({ sessionId }) => {
      throw new TroupeError("usage", `There is no remote session ${sessionId}: this server has only local sessions.`);
    },
  ),
  "session.remote.enable": sessionMethod(
    () => ({ mode: z.enum(["off", "export", "on"]).default("on") }),
    ({ mode }) => {
      if (mode === "off") return { remoteSteerable: false };
      throw new TroupeError("usage", "Sessions of this server are local; remote is not available.");
    },
  ),
  "session.remote.disable": sessionMethod(nothing, () => undefined),
  "session.visibility.get": sessionMethod(nothing, () => local),
  "session.visibility.set": sessionMethod(
    () => ({ status: z.enum(["repo", "unshared"]) }),
    () => local,
  ),
  "agentRegistry.spawn": method(anything, () => {
    throw new TroupeError("usage", "agentRegistry.spawn is not enabled on this server.");
  }),
  "session.lsp.initialize": sessionMethod(nothing, () => undefined),
  "session.completions.getTriggerCharacters": sessionMethod(nothing, () => ({ triggerCharacters: [] })),
  "session.completions.request": sessionMethod(
    () => ({ text: z.string(), offset: z.number() }),
    () => ({ items: [] }),
  ),
};
