/** Options of an open session. */
import { optionsOf, sessionOptions } from "../session-options.ts";
import { unusedParams, withoutEffect } from "../unused-options.ts";
import { type MethodTable, sessionMethod } from "./method.ts";

export const optionsMethods: MethodTable = {
  "session.options.update": sessionMethod(
    () => ({ ...unusedParams(), ...sessionOptions() }),
    async (changes, { hub, live }) => {
      await hub.reconfigure(live, optionsOf(changes));
      for (const message of withoutEffect(changes)) live.session.warn("options", message);
      return { success: true };
    },
  ),
};
