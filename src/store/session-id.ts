/** Validates session ids, and the errors for unknown and duplicate ones. */

import { TroupeError } from "../protocol/errors.ts";

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export const isSessionId = (text: string): boolean => SESSION_ID.test(text) && !text.includes("..");

export function checkSessionId(sessionId: string): string {
  if (isSessionId(sessionId)) return sessionId;
  throw new TroupeError("usage", `${JSON.stringify(sessionId.slice(0, 140))} cannot be the id of a session.`, {
    hint: "Use up to 128 letters, digits, dots, dashes and underscores; the first a letter or digit, no two dots together.",
  });
}

export function noSuchSession(sessionId: string): TroupeError {
  return new TroupeError("usage", `There is no session ${sessionId}.`, { hint: "List the sessions to find its id." });
}

export function alreadyThere(sessionId: string): TroupeError {
  return new TroupeError("usage", `Session ${sessionId} already exists.`, { hint: "Open it, or use another id." });
}
