import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { CurrentSkills } from "./current-skills.ts";
import type { SessionSetup } from "./session-setup.ts";

/** Returns the skills of the workspace, the user and the program. */
export function sessionSkills(setup: SessionSetup, workspace: Workspace): CurrentSkills {
  const { request, context, stateRoot, environment, channel } = setup;
  return new CurrentSkills(workspace.skills, {
    find: async () => (await openWorkspace(request.workspace ?? {}, { context, stateRoot, environment })).skills,
    onChange: () => channel.toolsChanged(),
  });
}
