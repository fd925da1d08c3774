/** Changes that clients make to a session beside its conversation. */
import * as z from "zod";
import { event, text } from "./define-event.ts";

export const workspaceEvents = [
  event("session.plan_changed", () => z.object({ operation: z.enum(["create", "update", "delete"]) })),
  event("session.workspace_file_changed", () => z.object({ path: text, operation: z.enum(["create", "update"]) })),
  event("session.autopilot_objective_changed", () => z.object({ operation: z.enum(["create", "update", "delete"]) })),
  event("session.remote_steerable_changed", () => z.object({ remoteSteerable: z.boolean() })),
] as const;
