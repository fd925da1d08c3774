/**
 * Reloads everything a session is created with from disk: instructions, plugins, MCP servers, hooks, agents, skills.
 */
import { TroupeError } from "../../protocol/errors.ts";
import { type MethodTable, nothing, type SessionCall, sessionMethod } from "./method.ts";

/** Closes the session and reopens it with the same options and clients. */
async function reload({ hub, hosted }: SessionCall): Promise<void> {
  if (hosted.isBusy) {
    throw new TroupeError("usage", "The session is busy, so nothing was reloaded.", {
      hint: "Try again when the session is idle.",
    });
  }
  await hub.takeBack(hosted);
}

export const reloadMethods: MethodTable = {
  "session.instructions.reload": sessionMethod(nothing, (_, call) => reload(call)),
  "session.customizations.reload": sessionMethod(nothing, async (_, call) => {
    await reload(call);
    if (call.hosted.options.requestExtensions) await call.hosted.extensions.reload();
    return { warnings: [], errors: [] };
  }),
};
