/** A fleet: the work of a prompt, divided among agents. */
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
