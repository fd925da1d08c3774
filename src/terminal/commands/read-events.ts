import type { SessionEvent } from "../../protocol/event.ts";
import type { Host } from "../host.ts";

/** Reads the stored events for an overlay and draws it again. */
export function readEvents(app: Host, use: (events: readonly SessionEvent[]) => void): void {
  app.session?.events().then(
    (events) => {
      use(events);
      app.screen.changedByKey();
    },
    (error: unknown) => app.fail(error),
  );
}
