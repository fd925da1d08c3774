/** Registers a client that stores sessions; see `../../sessions/storage-client.ts`. */
import * as z from "zod";
import { type MethodTable, method } from "../method.ts";

export const sessionFsMethods: MethodTable = {
  "sessionFs.setProvider": method(
    () =>
      z.object({
        initialCwd: z.string().min(1),
        sessionStatePath: z.string().min(1),
        conventions: z.enum(["posix", "windows"]),
        capabilities: z.object({ sqlite: z.boolean().optional() }).optional(),
      }),
    async ({ capabilities, ...storage }, { hub, connection }) => {
      await hub.keepWith(connection, { ...storage, hasSqlite: capabilities?.sqlite === true });
      return { success: true };
    },
  ),
};
