import { agents } from "./agents.ts";
import { blame } from "./blame.ts";
import { board } from "./board.ts";
import { cluster } from "./cluster.ts";
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { config } from "./config.ts";
import { diff } from "./diff.ts";
import { doctor } from "./doctor.ts";
import { help } from "./help.ts";
import { inbox } from "./inbox.ts";
import { init } from "./init.ts";
import { mcp } from "./mcp.ts";
import { memory } from "./memory.ts";
import { models } from "./models.ts";
import { fork, rewind } from "./rewind.ts";
import { search } from "./search.ts";
import { sessions } from "./sessions.ts";
import { submit } from "./submit.ts";
import { tasks } from "./tasks.ts";
import { trust } from "./trust.ts";
import { undo } from "./undo.ts";
import { usage } from "./usage.ts";
import { web } from "./web.ts";
import { worker } from "./worker.ts";

/** Every command, in the order of the help text. A new command is a file in this folder and a line here. */
export const commands: readonly Command[] = [
  sessions,
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
  trust,
  mcp,
  completion,
  worker,
  submit,
  cluster,
  help,
];
