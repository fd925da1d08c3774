import type { AgentSources } from "../../catalog/agents/agents.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { type Disk, nodeDisk } from "../../lib/node/disk.ts";
import { stateRoot } from "../home.ts";
import { openWorkspace } from "../workspace/workspace.ts";

/** Opens the data of `troupe agents`: the agents that a session in this folder would have. */
export async function openAgentsAdministration(options: {
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  trustFolder?: boolean;
  pluginDirectories?: readonly string[];
}): Promise<{ sources: AgentSources; disk: Disk }> {
  const { cwd, environment, trustFolder = false, pluginDirectories = [] } = options;
  const inputs = { context: workingDirectory(cwd), stateRoot: stateRoot(environment), environment };
  const { agentSources } = await openWorkspace({ trustFolder, pluginDirectories }, inputs);
  return { sources: agentSources, disk: nodeDisk };
}
