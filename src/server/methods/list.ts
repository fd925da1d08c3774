/** Every method of the server. A resource is a file; a new one is a line here. */

import { accountMethods } from "./account.ts";
import { accountsMethods } from "./accounts.ts";
import { agentMethods } from "./agent.ts";
import { assetsMethods } from "./assets.ts";
import { canvasMethods } from "./canvas.ts";
import { clientMetadataMethods } from "./client-metadata.ts";
import { commandMethods } from "./commands.ts";
import { connectionMethods } from "./connection.ts";
import { connectorsMethods } from "./connectors.ts";
import { discoverMethods } from "./discover.ts";
import { eventLogMethods } from "./event-log.ts";
import { extensionsMethods } from "./extensions.ts";
import { factoryMethods } from "./factory.ts";
import { fleetMethods } from "./fleet.ts";
import { historyMethods } from "./history.ts";
import { installationsMethods } from "./installations.ts";
import { keptSessionsMethods } from "./kept-sessions.ts";
import { mcpMethods } from "./mcp.ts";
import { mcpAppsMethods } from "./mcp-apps.ts";
import { metadataMethods } from "./metadata.ts";
import type { MethodTable } from "./method.ts";
import { modeMethods } from "./mode.ts";
import { modelMethods } from "./model.ts";
import { modelTunnelMethods } from "./model-tunnel.ts";
import { nameMethods } from "./name.ts";
import { openMethods } from "./open.ts";
import { optionsMethods } from "./options.ts";
import { pendingMethods } from "./pending.ts";
import { peripheralMethods } from "./peripheral.ts";
import { permissionsMethods } from "./permissions.ts";
import { planMethods } from "./plan.ts";
import { pluginsMethods } from "./plugins.ts";
import { queueMethods } from "./queue.ts";
import { reloadMethods } from "./reload.ts";
import { remoteMethods } from "./remote.ts";
import { scheduleMethods } from "./schedule.ts";
import { sendMethods } from "./send.ts";
import { sessionMethods } from "./session.ts";
import { sessionFsMethods } from "./session-fs.ts";
import { sessionsMethods } from "./sessions.ts";
import { shellMethods } from "./shell.ts";
import { skillsMethods } from "./skills.ts";
import { tasksMethods } from "./tasks.ts";
import { toolsMethods } from "./tools.ts";
import { unsupportedMethods } from "./unsupported.ts";
import { usageMethods } from "./usage.ts";
import { userMethods } from "./user.ts";
import { workspacesMethods } from "./workspaces.ts";

export const methods: MethodTable = {
  ...connectionMethods,
  ...connectorsMethods,
  ...sessionMethods,
  ...sendMethods,
  ...sessionsMethods,
  ...openMethods,
  ...peripheralMethods,
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
  ...keptSessionsMethods,
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
