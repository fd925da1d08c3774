/** Scheduled prompts, which a session sends itself later. */
import * as z from "zod";
import type { Session } from "../../../session/session.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

export const scheduleMethods: MethodTable = {
  "session.schedule.list": sessionMethod(nothing, (_, { session }) => ({
    entries: (schedulesOf(session)?.list() ?? []).map(scheduleEntry),
  })),
  "session.schedule.stop": sessionMethod(
    () => ({ id: z.number().int() }),
    async ({ id }, { session }) => {
      const entry = await schedulesOf(session)?.stop(id);
      return entry ? { entry: scheduleEntry(entry) } : {};
    },
  ),
};

type Schedules = NonNullable<ReturnType<NonNullable<NonNullable<Session["workspace"]["services"]>["schedules"]>>>;

const schedulesOf = (session: Session): Schedules | undefined => session.workspace.services?.schedules?.();

function scheduleEntry(entry: ReturnType<Schedules["list"]>[number]): object {
  const { nextRunAt, recurring, ...rest } = entry;
  return {
    ...rest,
    recurring,
    ...(!recurring && { at: nextRunAt }),
    nextRunAt: new Date(nextRunAt).toISOString(),
  };
}
