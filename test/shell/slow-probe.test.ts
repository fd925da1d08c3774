import { chmodSync } from "node:fs";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { hasBubblewrap } from "./bubblewrap.ts";

// Only programs of root are accepted.
const works = process.getuid?.() === 0 && (await hasBubblewrap());

it.runIf(works)("the sandbox is found on a machine where bubblewrap needs three seconds", async () => {
  await using folder = await tempFolder({ bwrap: '#!/bin/sh\nsleep 3\nexec /usr/bin/bwrap "$@"\n' });
  chmodSync(folder.at("bwrap"), 0o755);
  const sandbox = createSandbox({ mode: "auto", stateRoot: folder.at("state"), candidates: [folder.at("bwrap")] });
  expect(await sandbox.probe()).toEqual({ available: true, program: folder.at("bwrap") });
});
