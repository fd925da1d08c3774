/**
 * Catalogs and installations of MCP servers and skills. This server has none, and reports that in the protocol's form.
 */
import * as z from "zod";
import { type MethodTable, method } from "./method.ts";

const byContract = () =>
  z.looseObject({
    contract: z.looseObject({ requiredCapabilities: z.array(z.string()).max(100).catch([]) }).optional(),
  });

const refused = method(byContract, ({ contract }) => ({
  kind: "negotiation-refused",
  reason: "unsupported-capability",
  runtimeProtocolVersion: 0,
  minimumSupportedProtocolVersion: 0,
  supportedCapabilities: [],
  unsupportedCapabilities: contract?.requiredCapabilities ?? [],
  message:
    "This server installs no MCP servers and no skills. Name servers in mcpServers or in a settings file; put skills into a skill directory.",
}));

const names = [
  ...["prepareInstall", "applyInstall", "planUninstall", "applyUninstall"].map((name) => `mcp.${name}`),
  ...["planInstall", "applyInstall", "planUninstall", "applyUninstall"].map((name) => `skills.${name}`),
  ...["cancel", "list", "recover", "status"].map((name) => `mcp.installations.${name}`),
  ...["cancel", "list", "recover", "setEnabled", "status"].map((name) => `skills.installations.${name}`),
];

export const installationsMethods: MethodTable = {
  "catalog.select": method(byContract, () => ({
    kind: "unavailable",
    reason: "selection-unavailable",
    message: "This server has no catalog to select from.",
  })),
  ...Object.fromEntries(names.map((name) => [name, refused])),
};
