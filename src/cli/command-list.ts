import { agents } from "./table/agents.ts";
import { blame } from "./table/blame.ts";
import { board } from "./table/board.ts";
import { cluster } from "./table/cluster.ts";
import type { Command } from "./table/command.ts";
import { completion } from "./table/completion.ts";
import { config } from "./table/config.ts";
import { diff } from "./table/diff.ts";
import { doctor } from "./table/doctor.ts";
import { help } from "./table/help.ts";
import { inbox } from "./table/inbox.ts";
import { init } from "./table/init.ts";
import { mcp } from "./table/mcp.ts";
import { memory } from "./table/memory.ts";
import { login, logout, models } from "./table/models.ts";
import { fork, rewind } from "./table/rewind.ts";
import { search } from "./table/search.ts";
import { exportCommand, sessions } from "./table/sessions.ts";
import { submit } from "./table/submit.ts";
import { tasks } from "./table/tasks.ts";
import { trust } from "./table/trust.ts";
import { undo } from "./table/undo.ts";
import { usage } from "./table/usage.ts";
import { web } from "./table/web.ts";
import { worker } from "./table/worker.ts";

/** Every command, in the order of the help text. A new command is a file in `commands/`, one in `table/`, and a line here. */
export const commands: readonly Command[] = [
  sessions,
  exportCommand,
  search,
  web,
  diff,
  blame,
  undo,
  rewind,
  fork,
  usage,
  tasks,
  agents,
  inbox,
  memory,
  board,
  init,
  doctor,
  config,
  models,
  login,
  logout,
  trust,
  mcp,
  completion,
  worker,
  submit,
  cluster,
  help,
];
