/** Binary tool results, which the log names by their hash. An extension of the protocol. */
import * as z from "zod";
import { TroupeError } from "../../../protocol/errors.ts";
import { type MethodTable, sessionMethod } from "../method.ts";

export const assetsMethods: MethodTable = {
  "session.assets.read": sessionMethod(
    () => ({ assetId: z.string().min(1) }),
    async ({ assetId }, { session }) => {
      const bytes = await session.record.log.readAsset(assetId);
      if (!bytes) throw new TroupeError("usage", `The session has no asset ${assetId}.`);
      return { data: Buffer.from(bytes).toString("base64") };
    },
  ),
};
