import { addDir } from "./add-dir.ts";
import type { Command } from "./command.ts";
import { compact } from "./compact.ts";
import { context } from "./context.ts";
import { agent } from "./delegation/agent.ts";
import { autopilot } from "./delegation/autopilot.ts";
import { fleet } from "./delegation/fleet.ts";
import { plan } from "./delegation/plan.ts";
import { research } from "./delegation/research.ts";
import { review } from "./delegation/review.ts";
import { subconscious } from "./delegation/subconscious.ts";
import { tasks } from "./delegation/tasks.ts";
import { fork } from "./fork.ts";
import { helpCommand } from "./help.ts";
import { mcp } from "./mcp.ts";
import { model } from "./model.ts";
import { permissions } from "./permissions.ts";
import { rename } from "./rename.ts";
import { rewind } from "./rewind.ts";
import { after } from "./schedule/after.ts";
import { every } from "./schedule/every.ts";
import { schedules } from "./schedule/schedules.ts";
import { skills } from "./skills.ts";
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

/** The commands in the order of `/help`. Add a new command above, in one line. */
export const builtinCommands: readonly Command[] = [...others, helpCommand(() => others)];
