import { listTrusted, recordTrust } from "../../catalog/trust.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import type { McpAdministration, ServerCheck } from "../../tools/mcp/config/config-admin.ts";
import type { McpServerConfig } from "../../tools/mcp/server.ts";
import { stateRoot } from "../home.ts";
import { processParts } from "../process-parts.ts";
import { openWorkspace } from "../workspace/workspace.ts";

/** Opens the data of `troupe mcp`: the servers of this folder and of the user. `close` stops what it started. */
export async function openMcpAdministration(options: {
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
}): Promise<{ administration: McpAdministration; close(): Promise<void> }> {
  const { environment } = options;
  const root = stateRoot(environment);
  const context = workingDirectory(options.cwd);
  const workspace = await openWorkspace({}, { context, stateRoot: root, environment });
  const shared = processParts({ environment, stateRoot: root, disk: nodeDisk });
  const { mcpAdministration } = await import("../../tools/mcp/config/config-admin.ts");
  const administration = await mcpAdministration({
    sources: workspace.serverSources,
    disk: nodeDisk,
    probe: async (config) => probe(config, await shared.connections()),
    approveItem: async (item) => {
      const known = listTrusted(root).folders.find(({ folder }) => folder === workspace.root)?.items ?? [];
      const others = known.filter(({ kind, id }) => kind !== item.kind || id !== item.id);
      const items = [...others.map((other) => ({ ...other, shown: "" })), item];
      await recordTrust({ stateRoot: root, folder: workspace.root, items, disk: nodeDisk, stamp: systemStamp });
    },
    async openFetch(config) {
      const { guardedFetch } = await import("../../tools/mcp/guarded-fetch.ts");
      const { httpEndpoint } = await import("../../tools/mcp/http-endpoint.ts");
      return guardedFetch(httpEndpoint(config));
    },
  });
  return { administration, close: () => shared.close() };
}

/** Longer than any server may take to connect and list its tools. */
const PROBE_MS = 240_000;

async function probe(
  config: McpServerConfig,
  connections: Awaited<ReturnType<ReturnType<typeof processParts>["connections"]>>,
): Promise<ServerCheck> {
  const server = connections.use(config);
  try {
    const definitions = await server.definitions(AbortSignal.timeout(PROBE_MS));
    return { status: "connected", definitions };
  } catch (error) {
    const { status, error: known } = server.state();
    const reason = known ?? (error instanceof Error ? error.message : String(error));
    return { status: status === "connected" ? "failed" : status, error: reason };
  } finally {
    await server.release();
  }
}
