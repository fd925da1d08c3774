/** A process to be killed: the whole product but its surface consolidates a board, or takes the last change back. */
import { openBoardAdministration } from "../../src/runtime/knowledge/board-admin.ts";
import { consolidate } from "../../src/runtime/knowledge/consolidate.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";

const [, , action = "", home = "", cwd = "", sessionId = "", model = ""] = process.argv;
const environment = { HOME: home, TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1", TROUPE_SANDBOX: "off" };

if (action === "consolidate") {
  const runtime = createRuntime({ environment, home });
  const { outcome } = await consolidate(runtime, { cwd, sessionId, model: { name: model } });
  if (outcome.kind !== "done") throw "error" in outcome ? outcome.error : new Error(outcome.kind);
  await runtime.close();
} else {
  const { board, close } = openBoardAdministration({ cwd, environment, onNotice: () => undefined });
  await board.restore({ actor: "person" });
  await close();
}
