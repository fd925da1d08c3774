/** Connectors of a hosted account. This server has none: it lists them as unavailable and refuses to connect. */
import { TroupeError } from "../../protocol/errors.ts";
import { type MethodTable, nothing, sessionMethod } from "./method.ts";

const API_VERSION = 1;
const status = { apiVersion: API_VERSION, availability: "unavailable", runtimeServers: [], pendingConnections: 0 };
const catalog = { revision: 0, refreshedAtMs: 0, connectors: [] };

const answers = (answer: object) => sessionMethod(nothing, () => answer);
const refuses = sessionMethod(nothing, () => {
  throw new TroupeError("usage", "Connectors are not supported by this server.", {
    hint: "Configure the service as an MCP server: mcpServers.",
  });
});

export const connectorsMethods: MethodTable = {
  "session.connectors.getCapabilities": answers({
    apiVersion: API_VERSION,
    availability: "unavailable",
    consentContinuation: false,
    opaqueAccountSelection: false,
    maxPollAttempts: 0,
    maxPollIntervalMs: 0,
    maxDeadlineMs: 0,
  }),
  "session.connectors.getStatus": answers(status),
  "session.connectors.reconcile": answers(status),
  "session.connectors.list": answers(catalog),
  "session.connectors.refresh": answers(catalog),
  "session.connectors.disconnect": answers({ disconnected: false, status }),
  "session.connectors.connect": refuses,
  "session.connectors.reconnect": refuses,
  "session.connectors.continueConnection": refuses,
};
