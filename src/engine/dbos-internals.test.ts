import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DBOS_VERSION, dbosInternals } from "./dbos-internals.ts";

it("has the internals of the version that is installed, which is the one it names", async () => {
  expect(Object.keys(await dbosInternals())).toContain("currentOwnerXid");
  const {
    devDependencies = {},
    peerDependencies = {},
    optionalDependencies = {},
  } = JSON.parse(readFileSync("package.json", "utf8"));
  const declared = { ...devDependencies, ...peerDependencies, ...optionalDependencies }["@dbos-inc/dbos-sdk"];
  expect(declared).toBe(DBOS_VERSION);
});

it("refuses a version that lacks one, by its name", async () => {
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
