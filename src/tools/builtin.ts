import { applyPatch } from "./apply-patch.ts";
import { askUser } from "./ask-user.ts";
import { bash } from "./bash.ts";
import { create } from "./create.ts";
import { edit } from "./edit.ts";
import { exitPlanMode } from "./exit-plan-mode.ts";
import { glob } from "./glob.ts";
import { grep } from "./grep.ts";
import { listBash } from "./list-bash.ts";
import { readBash } from "./read-bash.ts";
import { sql } from "./sql.ts";
import { stopBash } from "./stop-bash.ts";
import { taskComplete } from "./task-complete.ts";
import type { Tool } from "./tool.ts";
import { updateTodo } from "./update-todo.ts";
import { view } from "./view.ts";
import { webFetch } from "./web-fetch.ts";
import { writeBash } from "./write-bash.ts";

/** Offered in every session. A new tool is one line here. */
export const builtinTools: readonly Tool[] = [
  view,
  glob,
  grep,
  create,
  edit,
  applyPatch,
  bash,
  readBash,
  writeBash,
  stopBash,
  listBash,
  webFetch,
  sql,
  updateTodo,
];

/** Offered in addition while the agent works on its own until the task is done. */
export const autopilotTools: readonly Tool[] = [taskComplete];

/** Offered in addition where someone can answer. */
export const interactiveTools: readonly Tool[] = [askUser, exitPlanMode];
