/** Options of an open session. */
import { optionsOf, sessionOptions } from "../session-options.ts";
import { type MethodTable, sessionMethod } from "./method.ts";

export const optionsMethods: MethodTable = {
  "session.options.update": sessionMethod(sessionOptions, async (changes, { hub, live }) => {
    await hub.reconfigure(live, optionsOf(changes));
    return { success: true };
  }),
};
