/** Approves eight tools of one server, one after the other, beside others that do the same. */
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { openPins } from "../../src/tools/mcp/config/pins.ts";

const [, , stateRoot = "", name = ""] = process.argv;
const pins = await openPins({ disk: nodeDisk, stateRoot });
for (let index = 0; index < 8; index++) {
  await pins.approve(
    {
      name,
      scope: "user",
      source: "test",
      transport: { type: "stdio", command: "node", args: [], environment: {} },
      tools: ["*"],
      timeoutMs: 1000,
    },
    [{ server: name, name: `tool-${index}`, description: "", inputSchema: {} }],
  );
}
