/** The user's settings, and secrets that must not be shown. */
import * as z from "zod";
import { changeOwnSettings, readOwnSettings } from "../../../runtime/workspace/discovery.ts";
import { type Call, type MethodTable, method, noParams } from "../method.ts";

const hostOf = ({ server }: Call) => ({ runtime: server.runtime, environment: server.options.environment });

export const userMethods: MethodTable = {
  "user.settings.get": method(noParams, (_, call) => ({ settings: readOwnSettings(hostOf(call)) })),
  "user.settings.set": method(
    () => z.object({ settings: z.record(z.string(), z.json()) }),
    async ({ settings }, call) => {
      await changeOwnSettings(hostOf(call), settings);
      return { shadowedKeys: [] };
    },
  ),
  "user.settings.reload": method(noParams, () => undefined), // read on every request
  "secrets.addFilterValues": method(
    () => z.object({ values: z.array(z.string()).max(1000) }),
    ({ values }, { server }) => {
      for (const value of values) server.runtime.addSecret(value);
      return { ok: true };
    },
  ),
};
