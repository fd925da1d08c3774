/** Options of an open session. */
import { optionsOf, sessionOptions } from "../../sessions/session-options.ts";
import { unusedParams, warnWithoutEffect } from "../../sessions/unused-options.ts";
import { type MethodTable, sessionMethod } from "../method.ts";

export const optionsMethods: MethodTable = {
  "session.options.update": sessionMethod(
    () => ({ ...unusedParams(), ...sessionOptions() }),
    async (changes, { hub, live }) => {
      await hub.reconfigure(live, optionsOf(changes));
      warnWithoutEffect(live.session, changes);
      return { success: true };
    },
  ),
};
