/** Options of an open session. */
import * as z from "zod";
import { exclusionParams, optionsOf, requireNoExclusions, sessionOptions } from "../../sessions/session-options.ts";
import { unusedParams, warnWithoutEffect } from "../../sessions/unused-options.ts";
import { type MethodTable, sessionMethod } from "../method.ts";

export const optionsMethods: MethodTable = {
  "session.options.update": sessionMethod(
    () => ({
      ...unusedParams(),
      ...sessionOptions(),
      ...exclusionParams(),
      /** The name of `streaming` in this method. */
      enableStreaming: z.boolean().optional(),
    }),
    async ({ enableStreaming, ...changes }, { hub, hosted }) => {
      requireNoExclusions(changes);
      const streaming = enableStreaming === undefined ? {} : { streaming: enableStreaming };
      await hub.reconfigure(hosted, optionsOf({ ...changes, ...streaming }));
      warnWithoutEffect(hosted.session, changes);
      return { success: true };
    },
  ),
};
