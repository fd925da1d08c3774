/** Commands that people type with a slash, as far as clients bring them. */
import * as z from "zod";
import { type MethodTable, sessionMethod } from "./method.ts";

export const commandMethods: MethodTable = {
  "session.commands.execute": sessionMethod(
    () => ({ commandName: z.string(), args: z.string().default("") }),
    async ({ commandName, args }, { live }) => {
      const error = await live.commands.run(commandName, args);
      return error === undefined ? {} : { error };
    },
  ),
  "session.commands.handlePendingCommand": sessionMethod(
    () => ({ requestId: z.string(), error: z.string().optional() }),
    ({ requestId, error }, { live }) => {
      live.commands.answer(requestId, error);
      return { success: true };
    },
  ),
};
