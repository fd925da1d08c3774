import { join } from "node:path";
import { MAX_SETTINGS_BYTES } from "../../catalog/settings/settings.ts";
import { parseSettings } from "../../catalog/settings/settings-parse.ts";
import { readTrust } from "../../catalog/trust.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { plural } from "../../lib/text.ts";
import { openAgentsAdministration } from "../../runtime/agents/agents-admin.ts";
import { openMcpAdministration } from "../../runtime/mcp/mcp-admin.ts";
import { type Check, type CheckContext, type Finding, reasonOf } from "./finding.ts";

/** Parses every configuration file. Errors name the file and the line. */
export const configFiles: Check = async (context) => [
  ...settingsPaths(context).flatMap(settingsFile),
  await providersFile(context),
  trustFile(context),
  ...(await servers(context).catch(notChecked("config.mcp", "MCP servers"))),
  ...(await agents(context).catch(notChecked("config.agents", "agents"))),
];

/** Broken settings are reported by their own check, and keep others from being read. */
const notChecked =
  (id: string, what: string) =>
  (error: unknown): Finding[] => [{ id, status: "warning", summary: `${what}: not checked: ${reasonOf(error)}` }];

function settingsPaths({ home, root, cwd }: CheckContext): string[] {
  const names = ["settings.json", "settings.local.json"];
  const folders = [...new Set([root, cwd])].flatMap((folder) => [
    join(folder, ".troupe"),
    join(folder, ".github", "copilot"),
  ]);
  const own = join(home, "settings.json");
  return [...new Set([own, ...folders.flatMap((folder) => names.map((name) => join(folder, name)))])];
}

function settingsFile(path: string): Finding[] {
  const id = "config.settings";
  const file = readSmallFile(path, { maxBytes: MAX_SETTINGS_BYTES });
  if (file.kind === "missing") return [];
  if (file.kind === "refused") return [{ id, status: "problem", summary: `${path} ${file.reason}` }];
  try {
    const { unknown } = parseSettings(path, file.text);
    if (unknown.length === 0) return [{ id, status: "ok", summary: path }];
    const remedy = "Correct the name, or remove it: troupe config unset <name>";
    return unknown.map(({ message }) => ({ id, status: "warning", summary: message, remedy }));
  } catch (error) {
    return [{ id, status: "problem", summary: reasonOf(error), remedy: `Correct the line in ${path}.` }];
  }
}

async function providersFile({ runtime, home }: CheckContext): Promise<Finding> {
  const id = "config.providers";
  try {
    await runtime.models.hasProvider("");
    return { id, status: "ok", summary: `providers: ${join(home, "providers.json")} and the environment are valid` };
  } catch (error) {
    return { id, status: "problem", summary: reasonOf(error), remedy: "Correct it. See `troupe help models`." };
  }
}

function trustFile({ home }: CheckContext): Finding {
  const id = "config.trust";
  const [notice] = readTrust(home).notices;
  if (notice === undefined) return { id, status: "ok", summary: "trusted folders: readable" };
  return { id, status: "warning", summary: notice.message, remedy: "Trust your folders again: troupe trust" };
}

async function servers({ cwd, environment }: CheckContext): Promise<Finding[]> {
  const id = "config.mcp";
  const { administration, close } = await openMcpAdministration({ cwd, environment });
  try {
    const list = await administration.list();
    const notices = administration.notices();
    const found = notices.map(
      (summary): Finding => ({ id, status: "warning", summary, remedy: "See: troupe mcp list" }),
    );
    return [...found, { id, status: "ok", summary: `MCP servers: ${list.length}` }];
  } finally {
    await close();
  }
}

async function agents({ cwd, environment }: CheckContext): Promise<Finding[]> {
  const id = "config.agents";
  const { checkAgentFiles } = await import("../../catalog/agents/agents-check.ts");
  const { sources } = await openAgentsAdministration({ cwd, environment, trustFolder: false, pluginDirectories: [] });
  const { findings, count } = await checkAgentFiles(sources, []);
  const bad = findings.map(
    ({ path, line, kind, message }): Finding => ({
      id,
      status: kind === "error" ? "problem" : "warning",
      summary: `${path}:${line}: ${message}`,
      remedy: "Correct the file, then run: troupe agents check",
    }),
  );
  return bad.length > 0 ? bad : [{ id, status: "ok", summary: `agents: ${plural(count, "file")} valid` }];
}
