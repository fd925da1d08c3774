import { addDir } from "./add-dir.ts";
import { after } from "./after.ts";
import { agent } from "./agent.ts";
import { autopilot } from "./autopilot.ts";
import type { Command } from "./command.ts";
import { compact } from "./compact.ts";
import { context } from "./context.ts";
import { every } from "./every.ts";
import { fleet } from "./fleet.ts";
import { fork } from "./fork.ts";
import { helpCommand } from "./help.ts";
import { mcp } from "./mcp.ts";
import { model } from "./model.ts";
import { permissions } from "./permissions.ts";
import { plan } from "./plan.ts";
import { rename } from "./rename.ts";
import { research } from "./research.ts";
import { review } from "./review.ts";
import { rewind } from "./rewind.ts";
import { schedules } from "./schedules.ts";
import { skills } from "./skills.ts";
import { subconscious } from "./subconscious.ts";
import { tasks } from "./tasks.ts";
import { undo } from "./undo.ts";
import { usage } from "./usage.ts";

const others: readonly Command[] = [
  review,
  research,
  fleet,
  autopilot,
  plan,
  agent,
  tasks,
  every,
  after,
  schedules,
  subconscious,
  model,
  usage,
  context,
  compact,
  skills,
  mcp,
  permissions,
  addDir,
  undo,
  rewind,
  fork,
  rename,
];

/** In the order `/help` shows them. A new command is one line above. */
export const builtinCommands: readonly Command[] = [...others, helpCommand(() => others)];
