/**
 * Methods of the protocol that belong to other hosts. Each reports that it is unavailable, in a form that callers
 * handle.
 */
import * as z from "zod";
import type { EventData } from "../../../protocol/event.ts";
import { askSideQuestion } from "../../../session/turn/side-question.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

export const peripheralMethods: MethodTable = {
  "session.telemetry.getEngagementId": sessionMethod(nothing, () => ({})),
  "session.telemetry.setFeatureOverrides": sessionMethod(
    () => ({ features: z.record(z.string(), z.unknown()) }),
    () => undefined, // nothing is measured, so nothing is overridden
  ),
  "session.ui.ephemeralQuery": sessionMethod(
    () => ({ question: z.string().min(1) }),
    async ({ question }, { hosted, session, signal }) => {
      const requestId = crypto.randomUUID();
      const tell = (data: Omit<EventData<"ui.ephemeral_query">, "requestId">): void =>
        hosted.announce("ui.ephemeral_query", { requestId, ...data });
      tell({ phase: "started" });
      try {
        const answer = await askSideQuestion(session, question, signal);
        tell({ phase: "completed", answer });
        return { answer };
      } catch (error) {
        tell(signal.aborted ? { phase: "aborted" } : { phase: "failed", error: messageOf(error) });
        throw error;
      }
    },
  ),
  "session.ui.registerDirectAutoModeSwitchHandler": sessionMethod(nothing, (_, { hosted, connection }) => ({
    handle: hosted.interests.register("auto_mode_switch.requested", connection),
  })),
  "session.ui.unregisterDirectAutoModeSwitchHandler": sessionMethod(
    () => ({ handle: z.string() }),
    ({ handle }, { hosted }) => ({ unregistered: hosted.interests.release(handle) }),
  ),
  "session.remote.notifySteerableChanged": sessionMethod(
    () => ({ remoteSteerable: z.boolean() }),
    async ({ remoteSteerable }, { session }) => {
      await session.record.emit("session.remote_steerable_changed", { remoteSteerable });
      return {};
    },
  ),
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
