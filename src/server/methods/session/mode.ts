/** The mode of a session: how autonomously its agent works. */
import * as z from "zod";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

export const modeMethods: MethodTable = {
  "session.mode.get": sessionMethod(nothing, (_, { session }) => session.mainAgent.modes.current),
  "session.mode.set": sessionMethod(
    () => ({ mode: z.enum(["interactive", "plan", "autopilot"]) }),
    async ({ mode }, { session }) => {
      await session.mainAgent.modes.set(mode);
      return { status: "applied", modelChanged: false };
    },
  ),
};
