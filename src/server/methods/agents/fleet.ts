/** A fleet: the work of a prompt, divided among agents. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { GivenAttachment } from "../../../protocol/define-event.ts";
import { fleetMessage, sendOn } from "../../../runtime/submit.ts";
import { type MethodTable, sessionMethod } from "../method.ts";

export const fleetMethods: MethodTable = {
  "session.fleet.start": sessionMethod(
    () => ({
      prompt: z.string().default(""),
      attachments: z.array(GivenAttachment).exactOptional(),
      /** True: responds when the session is idle again. */
      wait: z.boolean().default(false),
    }),
    async ({ prompt, attachments, wait }, { session }) => {
      await sendOn(session, { ...(await fleetMessage(session, prompt)), ...defined({ attachments }) });
      if (wait) await session.queue.whenIdle();
      return { started: true };
    },
  ),
};
