/** Starts a process that consolidates the learnings of a session that closes, if the context board is on. */
import { modelReference } from "../session/model-selection.ts";
import type { HostedSession } from "./sessions/hosted-session.ts";

/** The program and the arguments that precede those of troupe. */
export type OwnProgram = readonly [string, ...string[]];

/** Resolves when the process runs or cannot be started. Never rejects. */
export async function leaveConsolidation(
  hosted: HostedSession,
  how: { readonly program: OwnProgram; readonly environment: Readonly<Record<string, string | undefined>> },
): Promise<void> {
  const { session, options } = hosted;
  if (!session.workspace.services?.board) return;
  const { consolidateAtShutdown } = await import("../runtime/knowledge/shutdown-consolidation.ts");
  const { provider, providers, models } = options;
  await consolidateAtShutdown({
    ...how,
    session,
    model: modelReference(session.mainAgent.model),
    // The process has no access to a client's providers, and must not send the session to another provider.
    ...((provider ?? providers ?? models) !== undefined && { modelOfClient: true }),
  });
}
