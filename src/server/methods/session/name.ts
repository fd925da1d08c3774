/** The name of a session: chosen by the user, or taken from its first message. */
import * as z from "zod";
import { TroupeError } from "../../../protocol/errors.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const MAX_NAME_CHARACTERS = 200;

export const nameMethods: MethodTable = {
  "session.name.get": sessionMethod(nothing, (_, { session }) => ({
    name: session.record.name ?? session.record.title ?? null,
  })),
  "session.name.set": sessionMethod(
    () => ({ name: z.string() }),
    async ({ name }, { session }) => {
      if (name.trim() === "") throw new TroupeError("usage", "A session's name cannot be empty.");
      await session.record.rename(name.trim().slice(0, MAX_NAME_CHARACTERS));
    },
  ),
  // Has an effect only if the user has not chosen a name.
  "session.name.setAuto": sessionMethod(
    () => ({ summary: z.string() }),
    async ({ summary }, { session }) => {
      const title = summary.trim().slice(0, MAX_NAME_CHARACTERS);
      if (title === "" || session.record.name !== undefined) return { applied: false };
      await session.record.setTitle(title);
      return { applied: true };
    },
  ),
};
