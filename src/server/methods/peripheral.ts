/** Parts of the contract that belong to other hosts: each says that it is not here, in a form its callers handle. */
import * as z from "zod";
import { askAside } from "../../session/aside.ts";
import { type MethodTable, nothing, sessionMethod } from "./method.ts";

export const peripheralMethods: MethodTable = {
  "session.telemetry.getEngagementId": sessionMethod(nothing, () => ({})),
  "session.telemetry.setFeatureOverrides": sessionMethod(
    () => ({ features: z.record(z.string(), z.unknown()) }),
    () => undefined, // nothing is measured, so nothing is overridden
  ),
  "session.ui.ephemeralQuery": sessionMethod(
    () => ({ question: z.string().min(1) }),
    async ({ question }, { session, signal }) => ({ answer: await askAside(session, question, signal) }),
  ),
  "session.ui.registerDirectAutoModeSwitchHandler": sessionMethod(nothing, (_, { live, connection }) => ({
    handle: live.interests.register("auto_mode_switch.requested", connection),
  })),
  "session.ui.unregisterDirectAutoModeSwitchHandler": sessionMethod(
    () => ({ handle: z.string() }),
    ({ handle }, { live }) => ({ unregistered: live.interests.release(handle) }),
  ),
  "session.remote.notifySteerableChanged": sessionMethod(
    () => ({ remoteSteerable: z.boolean() }),
    async ({ remoteSteerable }, { session }) => {
      await session.say("session.remote_steerable_changed", { remoteSteerable });
      return {};
    },
  ),
};
