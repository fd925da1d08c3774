/** What clients are told of a session as a whole. */
import type { SessionEvent } from "../../protocol/event.ts";
import type { LiveSession } from "./live-session.ts";
import { folderOf } from "./session-files.ts";

/** When they open it. */
export function described({ session, clients, extensions }: LiveSession): object {
  return {
    sessionId: session.id,
    workspacePath: folderOf(session),
    capabilities: {
      ui: {
        elicitation: clients.canElicit,
        mcpApps: session.settings.surroundings?.showsApps ?? false,
        ...(clients.rendersCanvases && { canvases: true }),
      },
      extensions: extensions.isAvailable,
    },
    ...(clients.canvases.open.length > 0 && { openCanvases: clients.canvases.open }),
  };
}

/** When it changes. */
export function lifecycleMetadata(events: readonly SessionEvent[], title: string | undefined): object | undefined {
  const [first, last] = [events[0], events.at(-1)];
  if (!first || !last) return undefined;
  return {
    startTime: first.timestamp,
    modifiedTime: last.timestamp,
    ...(title !== undefined && { summary: title }),
  };
}
