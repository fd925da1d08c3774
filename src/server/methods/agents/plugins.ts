/** The user's plugins and marketplaces, from folders of this machine. */

import { isAbsolute, resolve } from "node:path";
import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { type InstalledPlugin, PluginsAdmin } from "../../../runtime/workspace/plugins-admin.ts";
import { type Call, type Method, type MethodTable, method, noParams } from "../method.ts";

const names = () => z.object({ names: z.array(z.string()).max(1_000) });
const from = () => z.object({ source: z.string().min(1), workingDirectory: z.string().optional() });

const adminOf = ({ server }: Call): PluginsAdmin => new PluginsAdmin(server.runtime.home);
const folderOf = ({ server }: Call, given: string | undefined): string => resolve(server.options.cwd, given ?? ".");

const MAX_GIVEN = 100;
const folder = () => z.string().max(4096).refine(isAbsolute, "a plugin's folder must be an absolute path");

/** A plugin that a program has fetched itself. */
const Given = () =>
  z.object({
    name: z.string(),
    enabled: z.boolean().default(true),
    cache_path: folder().optional(),
    source: z.unknown().optional(),
  });
const Local = () => z.object({ source: z.literal("local"), path: folder() });

function givenFolder({ name, cache_path: cached, source }: z.infer<ReturnType<typeof Given>>): string {
  const local = Local().safeParse(source);
  const path = cached ?? (local.success ? local.data.path : undefined);
  if (path !== undefined) return path;
  throw new TroupeError("usage", `The plugin ${name} has no folder on this machine.`, {
    hint: "Set cache_path to its folder. Plugins are not downloaded.",
  });
}

const admin: MethodTable = {
  "plugins.builtin.set": method(
    () => z.object({ paths: z.array(folder()).max(MAX_GIVEN) }),
    ({ paths }, { hub }) => {
      hub.plugins.builtin = paths;
    },
  ),
  "sessions.setAdditionalPlugins": method(
    () => z.object({ plugins: z.array(Given()).max(MAX_GIVEN) }),
    ({ plugins }, { hub }) => {
      hub.plugins.additional = plugins.filter(({ enabled }) => enabled).map(givenFolder);
      return {};
    },
  ),
  "plugins.list": method(noParams, (_, call) => ({ plugins: adminOf(call).list().map(pluginEntry) })),
  "plugins.install": method(from, async ({ source, workingDirectory }, call) => {
    const { plugin, skills } = await adminOf(call).install(source, folderOf(call, workingDirectory));
    return {
      plugin: pluginEntry(plugin),
      skillsInstalled: skills,
      ...(plugin.marketplace === "" && { deprecationWarning: DIRECT }),
    };
  }),
  "plugins.uninstall": method(
    () => z.object({ name: z.string(), directSourceId: z.string().nullish() }),
    ({ name, directSourceId }, call) => adminOf(call).uninstall(name, directSourceId ?? undefined),
  ),
  "plugins.update": method(
    () => z.object({ name: z.string() }),
    async ({ name }, call) => {
      const { skills, ...versions } = await adminOf(call).update(name);
      return { ...versions, skillsInstalled: skills };
    },
  ),
  "plugins.updateAll": method(noParams, async (_, call) => ({ results: await updateAll(adminOf(call)) })),
  "plugins.enable": method(names, ({ names: given }, call) => adminOf(call).setEnabled(given, true)),
  "plugins.disable": method(names, ({ names: given }, call) => adminOf(call).setEnabled(given, false)),
  "plugins.marketplaces.list": method(noParams, (_, call) => ({ marketplaces: adminOf(call).marketplaces() })),
  "plugins.marketplaces.add": method(from, async ({ source, workingDirectory }, call) => ({
    name: await adminOf(call).addMarketplace(source, folderOf(call, workingDirectory)),
  })),
  "plugins.marketplaces.remove": method(
    () => z.object({ name: z.string(), force: z.boolean().default(false) }),
    ({ name, force }, call) => adminOf(call).removeMarketplace(name, force),
  ),
  "plugins.marketplaces.browse": method(
    () => z.object({ name: z.string() }),
    ({ name }, call) => ({
      plugins: adminOf(call)
        .browse(name)
        .plugins.map(({ name: one, description }) => ({
          name: one,
          ...defined({ description }),
        })),
    }),
  ),
  "plugins.marketplaces.refresh": method(
    () => z.object({ name: z.string().optional() }),
    ({ name }, call) => ({ results: refreshMarketplaces(adminOf(call), name) }),
  ),
};

/** Names under which SDK 1.0.15 offers the same methods for one session. */
const ofSession = [
  ...["install", "uninstall", "update", "enable", "disable"],
  ...["list", "add", "remove", "browse", "refresh"].map((name) => `marketplaces.${name}`),
].map((name) => `plugins.${name}`);

/** The user's plugins, with paths relative to the session's folder. Open sessions use a change after a reload. */
function forSession({ params, run }: Method): Method {
  return {
    params: () => z.intersection(z.looseObject({ sessionId: z.string() }), params()),
    run: (given, call) => {
      const { sessionId } = given as { sessionId: string };
      const { cwd } = call.hub.require(sessionId).session.workspace;
      return run({ ...(given as object), workingDirectory: cwd }, call);
    },
  };
}

export const pluginsMethods: MethodTable = {
  ...admin,
  ...Object.fromEntries(
    Object.entries(admin)
      .filter(([name]) => ofSession.includes(name))
      .map(([name, one]) => [`session.${name}`, forSession(one)]),
  ),
};

const DIRECT =
  "Installing a plugin straight from its folder is deprecated in this contract: put it into a marketplace, and install it from there.";

function pluginEntry({ name, marketplace, directSourceId, version, enabled }: InstalledPlugin): object {
  return {
    name,
    marketplace,
    enabled,
    ...defined({ directSourceId, version }),
  };
}

/** A plugin that cannot be updated stays unchanged, and the others are still updated. */
async function updateAll(admin: PluginsAdmin): Promise<object[]> {
  const results: object[] = [];
  for (const { name, marketplace, directSourceId } of admin.list()) {
    const which = marketplace === "" ? name : `${name}@${marketplace}`;
    try {
      const { skills, ...versions } = await admin.update(which, directSourceId);
      results.push({ name, marketplace, success: true, ...versions, skillsInstalled: skills });
    } catch (error) {
      results.push({
        name,
        marketplace,
        success: false,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }
  return results;
}

/** Marketplaces are read on every request, so this only reports which of them are readable. */
function refreshMarketplaces(admin: PluginsAdmin, wanted: string | undefined): object[] {
  const all = wanted === undefined ? admin.marketplaces().map(({ name }) => name) : [wanted];
  return all.map((name) => {
    try {
      admin.browse(name);
      return { name, success: true };
    } catch (error) {
      return { name, success: false, error: error instanceof Error ? error.message : String(error) };
    }
  });
}
