/** MCP servers of agents. Those of the user's own agents may run; those of a project run only as approved. */
import type { AgentDefinition } from "../../agents/agent.ts";
import type { TrustCheck } from "../../tools/mcp/config/config.ts";
import type { NoteAgent } from "./agents-notice.ts";

const MAX_SERVERS = 20;
const OWN: ReadonlySet<AgentDefinition["source"]> = new Set(["program", "user", "plugin", "builtin"]);

/** Returns the agent without its unapproved servers. The agent itself is only text and stays usable. */
export async function withApprovedServers(
  agent: AgentDefinition,
  { check, note }: { check: TrustCheck | undefined; note: NoteAgent },
): Promise<AgentDefinition> {
  if (agent.mcpServers === undefined || OWN.has(agent.source)) return agent;
  const { mcpServers, ...rest } = agent;
  const approved: [string, unknown][] = [];
  for (const [name, entry] of Object.entries(mcpServers).slice(0, MAX_SERVERS)) {
    const checked = await checkServer(agent, { name, entry, check });
    if (checked.ok) approved.push([name, entry]);
    else note(checked.notice);
  }
  return approved.length === 0 ? rest : { ...rest, mcpServers: Object.fromEntries(approved) };
}

type ServerCheck = { readonly ok: true } | { readonly ok: false; readonly notice: Parameters<NoteAgent>[0] };

async function checkServer(
  agent: AgentDefinition,
  { name, entry, check }: { name: string; entry: unknown; check: TrustCheck | undefined },
): Promise<ServerCheck> {
  const path = agent.path ?? `${agent.source}/${agent.name}`;
  const refused = (kind: "untrusted" | "changed" | "field", why: string): ServerCheck => ({
    ok: false,
    notice: { kind, path, message: `The agent ${agent.name} cannot use its MCP server ${name}: ${why}` },
  });
  const [{ readEntry }, { pinnedItem }] = await Promise.all([
    import("../../tools/mcp/config/config-entry.ts"),
    import("../../tools/mcp/config/config-pin.ts"),
  ]);
  const read = readEntry(name, entry, { scope: "project", source: path, folder: folderOf(path) });
  if (read.kind === "refused") {
    const { field, message } = read.notice;
    return refused("field", `${path}: mcp-servers.${name}${field === undefined ? "" : `.${field}`}: ${message}.`);
  }
  const verdict = check?.(pinnedItem(read.config)) ?? "untrusted";
  if (verdict === "approved") return { ok: true };
  const reasons = {
    untrusted: "this folder is not trusted.",
    new: "it is not approved yet.",
    changed: "it has changed since it was approved.",
  };
  return refused(
    verdict === "changed" ? "changed" : "untrusted",
    `${reasons[verdict]} Review it, then run: troupe trust`,
  );
}

const folderOf = (path: string): string => path.replace(/[\\/][^\\/]*$/, "");
