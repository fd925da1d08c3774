/**
 * A process to be killed: starts many commands that leave grandchildren in every way they can, says "ready" when all
 * of them run, and waits. Arguments: folder, number of commands, "off" or "required" for the sandbox, a token, and a
 * command that is run instead of those. With the command "expect" it expects a further one and says its mark instead.
 */
import { writeSync } from "node:fs";
import { PROCESS_MARK } from "../../src/tools/shell/process/watchdog.ts";
import { createSandbox, type SandboxMode } from "../../src/tools/shell/sandbox/sandbox.ts";
import { createShells } from "../../src/tools/shell/session-shells.ts";

const [, , folder = "", countText = "1", mode = "off", token = "", command] = process.argv;
const sandbox = createSandbox({ mode: mode as SandboxMode, stateRoot: `${folder}/state` });
const shells = createShells({ folder: `${folder}/files`, sandbox });

/** The token in the arguments lets a test find what survived. */
const ways = [
  `sleep ${token}`,
  `(sleep ${token} &) ; sleep ${token}`,
  `setsid sleep ${token} & sleep ${token}`,
  `nohup setsid sh -c 'trap "" TERM HUP INT; sleep ${token} & sleep ${token}' >/dev/null 2>&1 & sleep ${token}`,
  `env -i setsid sh -c '(sleep ${token} >/dev/null 2>&1 &)' & sleep ${token}`,
  `trap '' TERM INT HUP; while :; do sleep ${token}; done`,
];

for (let index = 0; index < Number(countText); index++) {
  const batch = { cwd: `${folder}/workspace`, roots: [`${folder}/workspace`], signal: new AbortController().signal };
  const kind = index % 3;
  await shells.run({
    ...batch,
    command: (command === "expect" ? "true" : command) ?? ways[index % ways.length] ?? "",
    mode: kind === 0 ? "sync" : "async",
    waitMs: command === "expect" ? 20_000 : 0,
    ...(kind === 2 && { shellId: `named-${index}` }),
  });
}
if (command === "expect") shells.expectCommand?.();
writeSync(1, command === "expect" ? `${PROCESS_MARK}\n` : "ready\n");
setInterval(() => undefined, 1000);
