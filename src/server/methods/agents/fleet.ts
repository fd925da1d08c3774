/** A fleet: the work of a prompt, cut into parts that agents take. */
import * as z from "zod";
import { fleetMessage, sendOn } from "../../../runtime/submit.ts";
import { type MethodTable, sessionMethod } from "../method.ts";

export const fleetMethods: MethodTable = {
  "session.fleet.start": sessionMethod(
    () => ({ prompt: z.string().default("") }),
    async ({ prompt }, { session }) => {
      await sendOn(session, await fleetMessage(session, prompt));
      return { started: true };
    },
  ),
};
