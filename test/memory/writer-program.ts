/** A process that keeps facts and says each one that was acknowledged. Named "doomed", it dies when its input ends. */
import { openLocalMemory } from "../../src/context/memory/open.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { systemStamp } from "../../src/lib/stamp.ts";

const [stateRoot = "", cwd = "", name = "", count = "1"] = process.argv.slice(2);
if (name === "doomed") process.stdin.on("end", () => process.kill(process.pid, "SIGKILL")).resume();
const ports = { disk: nodeDisk, stamp: systemStamp, redactor: createRedactor({ values: [] }) };
const memory = openLocalMemory({ stateRoot, cwd, isTrusted: false, ports });
for (let index = 0; index < Number(count); index++) {
  const fact = `Fact ${index} of ${name}.`;
  await memory.store({
    subject: "s",
    fact,
    citations: "",
    reason: "",
    scope: "repository",
    author: "person",
    source: { kind: "command" },
    status: "accepted",
  });
  process.stdout.write(`${fact}\n`);
}
