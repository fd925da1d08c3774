/** The page inside an exported file: one session, its log in the file, no server. It replays offline. */
import { render } from "preact";
import type { SessionEvent } from "../../protocol/event.ts";
import { Help, startKeys } from "./keys.tsx";
import { go, route } from "./route.ts";
import { PageSession } from "./session-model.ts";
import { isExported, session } from "./state.ts";
import { SessionPage } from "./views/session.tsx";

const root = document.getElementById("app");
const log = document.getElementById("log");
if (root && log) {
  const events = JSON.parse(log.textContent ?? "[]") as SessionEvent[];
  isExported.value = true;
  const model = new PageSession("exported");
  session.value = model;
  if (route.value.view !== "session") go({ view: "session", id: "exported", tab: "run", agent: "" });
  model.take(events);
  model.ready();
  startKeys();
  render(<Exported />, root);
}

function Exported() {
  const at = route.value;
  const shown = at.view === "session" ? at : ({ view: "session", id: "exported", tab: "run", agent: "" } as const);
  return (
    <>
      <SessionPage route={shown} />
      <Help />
    </>
  );
}
