import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DBOS_VERSION, dbosInternals } from "./dbos-internals.ts";

it("the internals of DBOS exist in the installed version, which is the declared one", async () => {
  expect(Object.keys(await dbosInternals())).toContain("currentOwnerXid");
  const {
    devDependencies = {},
    peerDependencies = {},
    optionalDependencies = {},
  } = JSON.parse(readFileSync("package.json", "utf8"));
  const declared = { ...devDependencies, ...peerDependencies, ...optionalDependencies }["@dbos-inc/dbos-sdk"];
  expect(declared).toBe(DBOS_VERSION);
});

it("a DBOS version that lacks an internal is refused with the name of the internal", async () => {
  const whole = await dbosInternals();
  await expect(dbosInternals(async () => ({ ...whole, currentOwnerXid: undefined }))).rejects.toThrow(
    /cannot be used: it lacks currentOwnerXid/,
  );
  await expect(dbosInternals(async () => ({ ...whole, wfQueueRunner: {} }))).rejects.toThrow(
    /lacks wfQueueRunner.dispatchLoop/,
  );
  await expect(dbosInternals(() => Promise.reject(new Error("no such module")))).rejects.toThrow(
    /its internal modules/,
  );
});
