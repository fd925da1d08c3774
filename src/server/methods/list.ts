/**
 * Every method of the server. Each resource is a file in this folder or in `agents/`, `host/` or `session/`. A new file
 * needs an import and a line in the table below.
 */

import { accountsMethods } from "./accounts.ts";
import { agentMethods } from "./agents/agent.ts";
import { canvasMethods } from "./agents/canvas.ts";
import { commandMethods } from "./agents/commands.ts";
import { extensionsMethods } from "./agents/extensions.ts";
import { factoryMethods } from "./agents/factory.ts";
import { fleetMethods } from "./agents/fleet.ts";
import { pluginsMethods } from "./agents/plugins.ts";
import { skillsMethods } from "./agents/skills.ts";
import { tasksMethods } from "./agents/tasks.ts";
import { toolsMethods } from "./agents/tools.ts";
import { connectorsMethods } from "./connectors.ts";
import { accountMethods } from "./host/account.ts";
import { connectionMethods } from "./host/connection.ts";
import { discoverMethods } from "./host/discover.ts";
import { mcpMethods } from "./host/mcp.ts";
import { mcpAppsMethods } from "./host/mcp-apps.ts";
import { modelMethods } from "./host/model.ts";
import { modelTunnelMethods } from "./host/model-tunnel.ts";
import { peripheralMethods } from "./host/peripheral.ts";
import { permissionsMethods } from "./host/permissions.ts";
import { providerKeysMethods } from "./host/provider-keys.ts";
import { remoteMethods } from "./host/remote.ts";
import { shellMethods } from "./host/shell.ts";
import { userMethods } from "./host/user.ts";
import { installationsMethods } from "./installations.ts";
import type { MethodTable } from "./method.ts";
import { reloadMethods } from "./reload.ts";
import { assetsMethods } from "./session/assets.ts";
import { clientMetadataMethods } from "./session/client-metadata.ts";
import { eventLogMethods } from "./session/event-log.ts";
import { historyMethods } from "./session/history.ts";
import { metadataMethods } from "./session/metadata.ts";
import { modeMethods } from "./session/mode.ts";
import { nameMethods } from "./session/name.ts";
import { openMethods } from "./session/open.ts";
import { optionsMethods } from "./session/options.ts";
import { pendingMethods } from "./session/pending.ts";
import { planMethods } from "./session/plan.ts";
import { queueMethods } from "./session/queue.ts";
import { scheduleMethods } from "./session/schedule.ts";
import { sendMethods } from "./session/send.ts";
import { sessionMethods } from "./session/session.ts";
import { sessionFsMethods } from "./session/session-fs.ts";
import { sessionsMethods } from "./session/sessions.ts";
import { storedSessionsMethods } from "./session/stored-sessions.ts";
import { usageMethods } from "./session/usage.ts";
import { workspacesMethods } from "./session/workspaces.ts";
import { unsupportedMethods } from "./unsupported.ts";

export const methods: MethodTable = {
  ...connectionMethods,
  ...connectorsMethods,
  ...sessionMethods,
  ...sendMethods,
  ...sessionsMethods,
  ...openMethods,
  ...peripheralMethods,
  ...providerKeysMethods,
  ...assetsMethods,
  ...unsupportedMethods,
  ...clientMetadataMethods,
  ...canvasMethods,
  ...extensionsMethods,
  ...factoryMethods,
  ...historyMethods,
  ...installationsMethods,
  ...shellMethods,
  ...permissionsMethods,
  ...toolsMethods,
  ...skillsMethods,
  ...mcpMethods,
  ...mcpAppsMethods,
  ...userMethods,
  ...pluginsMethods,
  ...remoteMethods,
  ...storedSessionsMethods,
  ...discoverMethods,
  ...workspacesMethods,
  ...usageMethods,
  ...tasksMethods,
  ...scheduleMethods,
  ...planMethods,
  ...nameMethods,
  ...modeMethods,
  ...metadataMethods,
  ...fleetMethods,
  ...eventLogMethods,
  ...agentMethods,
  ...pendingMethods,
  ...queueMethods,
  ...reloadMethods,
  ...optionsMethods,
  ...modelTunnelMethods,
  ...modelMethods,
  ...accountMethods,
  ...accountsMethods,
  ...commandMethods,
  ...sessionFsMethods,
};
