import { setTimeout as pause } from "node:timers/promises";
import { forAgent, type PlainStep } from "../../src/model/faux/faux-plan.ts";
import { calls } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { Session } from "../../src/session/session.ts";
import type { HttpPlay, HttpStep } from "../../src/testing/http-reply.ts";
import { HANG_MS } from "../support/work.ts";

/** The file of a person's own sidekick. It says its name, by which a script knows it. */
export const sidekickFile = (name: string, more: readonly string[] = [], block = "{ triggers: [user.message] }") =>
  [
    "---",
    `name: ${name}`,
    "description: Looks around.",
    `sidekick: ${block}`,
    ...more,
    "---",
    `You are known as @@${name}.`,
    "",
  ].join("\n");

/** Steps of that sidekick, whichever run. */
export const beside = (name: string, ...steps: readonly PlainStep<HttpPlay>[]): HttpStep =>
  forAgent<HttpPlay>((request) => isOf(name, request), ...steps);

export const isOf = (name: string, { system }: ModelRequest): boolean => system.includes(`@@${name}.`);

export const sends = (summary: string, content = `all about ${summary}`) => calls(["send_inbox", { summary, content }]);

/** Waits, for a bounded time, until something of this session is so. */
export async function until<T>(look: () => T | undefined | false): Promise<T> {
  for (const end = Date.now() + HANG_MS; Date.now() < end; await pause(5)) {
    const found = look();
    if (found !== undefined && found !== false) return found;
  }
  throw new Error(`It never happened: ${look}`);
}

export const entries = ({ events }: Session) => ofType(events, "troupe.inbox_entry");
export const ends = ({ events }: Session) => ofType(events, "troupe.sidekick_ended").map(({ reason }) => reason);
export const begun = ({ events }: Session) => ofType(events, "troupe.sidekick_triggered");

export function ofType<T extends SessionEvent["type"]>(events: readonly SessionEvent[], type: T) {
  return events
    .filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type)
    .map(({ data }) => data as Extract<SessionEvent, { type: T }>["data"]);
}
