/** Keys of model providers, for programs that let their user enter one. No method returns a key. */
import * as z from "zod";
import { type MethodTable, method, noParams } from "../method.ts";

export const providerKeysMethods: MethodTable = {
  "providerKeys.list": method(noParams, async (_, { server }) => {
    const keys = await server.runtime.models.keys();
    return { providers: await keys.list() };
  }),
  "providerKeys.set": method(
    () => z.object({ provider: z.string(), apiKey: z.string().max(8192) }),
    async (given, { server, signal }) => (await server.runtime.models.keys()).set(given, signal),
  ),
  "providerKeys.clear": method(noParams, async (_, { server }) => (await server.runtime.models.keys()).clear()),
};
