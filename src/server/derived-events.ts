/** Events of the protocol that follow from other events. They are not logged; clients receive them as they arise. */
import { defined } from "../lib/defined.ts";
import type { EventData, EventType, SessionEvent } from "../protocol/event.ts";
import { modelName } from "../session/model-selection.ts";
import type { Session } from "../session/session.ts";

type DerivedType =
  | "subagent.configured"
  | "session.mcp_server_removed"
  | "session.mcp_server_needs_reconnect"
  | "session.binary_asset";

export interface Derived<T extends EventType = DerivedType> {
  readonly type: T;
  readonly data: EventData<T>;
  readonly agentId?: string;
}

export class DerivedEvents {
  readonly #session: () => Session;
  readonly #send: (derived: Derived) => void;
  /** The last known state of each MCP server. */
  readonly #servers = new Map<string, string>();
  readonly #assets = new Set<string>();

  constructor(session: () => Session, send: (derived: Derived) => void) {
    this.#session = session;
    this.#send = send;
  }

  /** Call with every event after it was sent to clients. */
  follow(event: SessionEvent): void {
    switch (event.type) {
      case "subagent.started":
        this.#configured(event);
        break;
      case "session.mcp_servers_loaded":
        for (const { name, status } of event.data.servers) this.#servers.set(name, status);
        break;
      case "session.mcp_server_status_changed":
        this.#serverChanged(event.data);
        break;
      case "tool.execution_complete":
        for (const asset of event.data.result?.binaryResultsForLlm ?? []) void this.#asset(asset);
        break;
      case "user.message":
        for (const attachment of event.data.attachments ?? []) {
          if (attachment.type !== "blob" || attachment.assetId === undefined) continue;
          const { assetId, mimeType, byteLength = 0, displayName: description } = attachment;
          const type = mimeType.startsWith("image/") ? "image" : "resource";
          void this.#asset({ type, assetId, mimeType, byteLength, ...defined({ description }) });
        }
        break;
      default:
    }
  }

  /** Call after the session was reopened: its MCP servers may differ. */
  reopened(): void {
    const names = new Set(
      this.#session()
        .workspace.services?.serverSummaries()
        .map(({ name }) => name),
    );
    for (const serverName of this.#servers.keys()) {
      if (names.has(serverName)) continue;
      this.#servers.delete(serverName);
      this.#send({ type: "session.mcp_server_removed", data: { serverName } });
    }
  }

  #configured({ agentId, data }: Extract<SessionEvent, { type: "subagent.started" }>): void {
    const { selection } = this.#session().mainAgent;
    const model = data.model ?? (selection && modelName(selection.current));
    if (model === undefined) return;
    // Agents of a factory answer once. All others accept further messages.
    const multiTurn = data.factoryRunId === undefined;
    this.#send({ type: "subagent.configured", data: { model, multiTurn }, ...defined({ agentId }) });
  }

  #serverChanged({ serverName, status }: EventData<"session.mcp_server_status_changed">): void {
    const wasConnected = this.#servers.get(serverName) === "connected";
    this.#servers.set(serverName, status);
    if (wasConnected && status === "failed") {
      this.#send({ type: "session.mcp_server_needs_reconnect", data: { serverName } });
    }
  }

  /** Sends the bytes of an asset the first time an event names it. */
  async #asset(asset: Omit<EventData<"session.binary_asset">, "data">): Promise<void> {
    if (this.#assets.has(asset.assetId)) return;
    this.#assets.add(asset.assetId);
    const bytes = await this.#session().record.log.readAsset(asset.assetId);
    if (!bytes) return;
    const data = Buffer.from(bytes).toString("base64");
    this.#send({ type: "session.binary_asset", data: { ...asset, byteLength: bytes.length, data } });
  }
}
