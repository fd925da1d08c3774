import { glob } from "./glob.ts";
import { grep } from "./grep.ts";
import { taskComplete } from "./task-complete.ts";
import type { Tool } from "./tool.ts";
import { view } from "./view.ts";

/** Offered in every session. A new tool is one line here. */
export const builtinTools: readonly Tool[] = [view, glob, grep];

/** Offered in addition while the agent works on its own until the task is done. */
export const autopilotTools: readonly Tool[] = [taskComplete];
