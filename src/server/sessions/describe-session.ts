/** Descriptions of a session that clients receive. */
import { defined } from "../../lib/defined.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { HostedSession } from "./hosted-session.ts";
import { folderOf } from "./session-files.ts";

/** The description in the response that opens the session. */
export function describeSession({ session, clients, extensions }: HostedSession): object {
  return {
    sessionId: session.id,
    workspacePath: folderOf(session),
    capabilities: {
      ui: {
        elicitation: clients.canElicit,
        mcpApps: session.workspace.services?.showsApps ?? false,
        ...(clients.rendersCanvases && { canvases: true }),
      },
      extensions: extensions.isAvailable,
    },
    ...(clients.canvases.open.length > 0 && { openCanvases: clients.canvases.open }),
  };
}

/** The metadata in notifications of a change. */
export function lifecycleMetadata(events: readonly SessionEvent[], title: string | undefined): object | undefined {
  const [first, last] = [events[0], events.at(-1)];
  if (!first || !last) return undefined;
  return {
    startTime: first.timestamp,
    modifiedTime: last.timestamp,
    ...defined({ summary: title }),
  };
}
