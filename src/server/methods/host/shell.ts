/** Commands that a user runs beside the agent. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { type MethodTable, sessionMethod } from "../method.ts";

export const shellMethods: MethodTable = {
  "session.shell.exec": sessionMethod(
    () => ({ command: z.string().min(1), cwd: z.string().optional(), timeout: z.number().min(0).optional() }),
    async ({ command, cwd, timeout }, { hosted, connection }) => {
      const request = {
        command,
        ...defined({ cwd, timeoutMs: timeout }),
      };
      const processId = await hosted.shell.exec(request, (id, exitCode) =>
        connection.notify("shell.exit", { processId: id, exitCode }),
      );
      return { processId };
    },
  ),
  "session.shell.kill": sessionMethod(
    () => ({ processId: z.string(), signal: z.enum(["SIGTERM", "SIGKILL", "SIGINT"]).optional() }),
    async ({ processId }, { hosted }) => ({ killed: await hosted.shell.kill(processId) }),
  ),
  "session.shell.executeUserRequested": sessionMethod(
    () => ({ requestId: z.string().min(1), command: z.string().min(1), hiddenFromModel: z.boolean().optional() }),
    ({ requestId, ...request }, { hosted }) => hosted.shell.run(requestId, request),
  ),
  "session.shell.cancelUserRequested": sessionMethod(
    () => ({ requestId: z.string() }),
    ({ requestId }, { hosted }) => ({ cancelled: hosted.shell.cancel(requestId) }),
  ),
};
