import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { LiveSkills } from "./live-skills.ts";
import type { SessionSetup } from "./session-setup.ts";

/** Returns the skills of the workspace, the user and the program. */
export function sessionSkills(setup: SessionSetup, workspace: Workspace): LiveSkills {
  const { request, context, stateRoot, environment, channel } = setup;
  return new LiveSkills(workspace.skills, {
    find: async () => (await openWorkspace(request.workspace ?? {}, { context, stateRoot, environment })).skills,
    onChange: () => channel.toolsChanged(),
  });
}
