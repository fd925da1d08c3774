/**
 * Manages installed plugins: copies them into the state root from a local folder or marketplace, lists them in
 * `plugins.json`, and enables or disables them. Fetches nothing; installing runs nothing.
 */

import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";
import { isPluginName, readManifest } from "../../catalog/plugins/plugin-manifest.ts";
import { findParts, isEmpty } from "../../catalog/plugins/plugin-parts.ts";
import { INSTALLED_PLUGINS, readRegistry, registryPath } from "../../catalog/plugins/plugin-registry.ts";
import { defined } from "../../lib/defined.ts";
import { type Disk, nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { withFileLock } from "../../lib/node/file-lock.ts";
import { realPath } from "../../lib/node/real-path.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type Marketplace, ownMarketplace, pluginFolderOf, readMarketplace } from "./marketplaces.ts";
import { copyPlugin, countSkills } from "./plugin-copy.ts";

const registrySchema = () =>
  z.object({
    marketplaces: z.record(z.string(), z.object({ source: z.string() })).default({}),
    plugins: z
      .array(
        z.object({
          name: z.string(),
          /** Empty for a plugin installed from a folder. */
          marketplace: z.string(),
          directSourceId: z.string().exactOptional(),
          version: z.string().exactOptional(),
          enabled: z.boolean(),
          source: z.string(),
          /** Relative to the folder of installed plugins. */
          folder: z.string(),
          installedAt: z.string(),
        }),
      )
      .default([]),
  });
type Registry = z.infer<ReturnType<typeof registrySchema>>;
export type InstalledPlugin = Registry["plugins"][number];

/** The built-in marketplace of the user's own plugins below the state root. */
const OWN = "own";

export class PluginsAdmin {
  readonly #stateRoot: string;
  readonly #disk: Disk;

  constructor(stateRoot: string, disk: Disk = nodeDisk) {
    this.#stateRoot = stateRoot;
    this.#disk = disk;
  }

  list(): readonly InstalledPlugin[] {
    return this.#read().plugins;
  }

  marketplaces(): { name: string; source: string; isDefault: boolean }[] {
    const added = Object.entries(this.#read().marketplaces);
    return [
      { name: OWN, source: this.#ownFolder, isDefault: true },
      ...added.map(([name, { source }]) => ({ name, source, isDefault: false })),
    ];
  }

  browse(name: string): Marketplace {
    if (name === OWN) return ownMarketplace(this.#ownFolder, OWN);
    const known = this.#read().marketplaces[name];
    if (!known) throw new TroupeError("usage", `There is no marketplace ${name}: add its folder first.`);
    return readMarketplace(known.source);
  }

  async addMarketplace(source: string, cwd: string): Promise<string> {
    const { name, root } = readMarketplace(this.#localFolder(source, cwd));
    if (name === OWN) throw new TroupeError("usage", `The name ${OWN} is taken by your own plugins.`);
    await this.#change((registry) => {
      const other = registry.marketplaces[name];
      if (other && other.source !== root) {
        throw new TroupeError("usage", `There is a marketplace ${name} already, in ${other.source}.`);
      }
      return { ...registry, marketplaces: { ...registry.marketplaces, [name]: { source: root } } };
    });
    return name;
  }

  /** Removes a marketplace. If its plugins are installed, requires `force` and removes them too. */
  async removeMarketplace(name: string, force: boolean): Promise<{ removed: boolean; dependentPlugins?: string[] }> {
    const { marketplaces, plugins } = this.#read();
    if (!Object.hasOwn(marketplaces, name)) {
      throw new TroupeError("usage", `There is no marketplace ${name} that could be removed.`);
    }
    const dependent = plugins.filter(({ marketplace }) => marketplace === name);
    const dependentPlugins = dependent.map((plugin) => plugin.name);
    if (dependent.length > 0 && !force) return { removed: false, dependentPlugins };
    for (const plugin of dependent) await this.#remove(plugin);
    await this.#change((registry) => {
      const { [name]: _, ...rest } = registry.marketplaces;
      return { ...registry, marketplaces: rest };
    });
    return { removed: true, ...(dependent.length > 0 && { dependentPlugins }) };
  }

  /** Installs from `name@marketplace` or a folder path. */
  async install(source: string, cwd: string): Promise<{ plugin: InstalledPlugin; skills: number }> {
    const [, name = "", marketplace = ""] = /^([^@/\\]+)@([^@/\\]+)$/.exec(source) ?? [];
    if (name === "") return this.#installFolder(this.#localFolder(source, cwd));
    const market = this.browse(marketplace);
    const offered = market.plugins.find((plugin) => plugin.name === name);
    if (!offered) throw new TroupeError("usage", `The marketplace ${marketplace} has no plugin ${name}.`);
    const from = pluginFolderOf(market, offered);
    return this.#install({ from, name, marketplace, folder: join(marketplace, name), version: offered.version });
  }

  async uninstall(name: string, directSourceId?: string): Promise<void> {
    await this.#remove(this.#find(name, directSourceId));
  }

  /** Installs the plugin again from its source. */
  async update(
    wanted: string,
    directSourceId?: string,
  ): Promise<{ previousVersion?: string; newVersion?: string; skills: number }> {
    const before = this.#find(wanted, directSourceId);
    const { name, marketplace, source, version: previousVersion } = before;
    const { plugin, skills } = await (marketplace === ""
      ? this.#installFolder(source)
      : this.install(`${name}@${marketplace}`, this.#stateRoot));
    return {
      ...defined({ previousVersion, newVersion: plugin.version }),
      skills,
    };
  }

  async setEnabled(names: readonly string[], enabled: boolean): Promise<void> {
    const folders = new Set(names.map((name) => this.#find(name).folder));
    await this.#change((registry) => ({
      ...registry,
      plugins: registry.plugins.map((plugin) => (folders.has(plugin.folder) ? { ...plugin, enabled } : plugin)),
    }));
  }

  get #ownFolder(): string {
    return join(this.#stateRoot, "marketplace");
  }

  #localFolder(source: string, cwd: string): string {
    const folder = realPath(resolve(cwd, source.replace(/^~(?=$|[\\/])/, homedir())));
    if (folder !== undefined) return folder;
    throw new TroupeError("usage", `${source} is not a folder on this machine.`, {
      hint: "Nothing is fetched from elsewhere: get a copy of it first, then name its folder.",
    });
  }

  #installFolder(from: string): Promise<{ plugin: InstalledPlugin; skills: number }> {
    const name = nameOf(from);
    const directSourceId = createHash("sha256").update(from).digest("hex").slice(0, 16);
    return this.#install({
      from,
      name,
      marketplace: "",
      directSourceId,
      folder: join(`folder-${directSourceId}`, name),
    });
  }

  async #install(what: {
    readonly from: string;
    readonly name: string;
    readonly marketplace: string;
    readonly folder: string;
    readonly directSourceId?: string;
    readonly version?: string | undefined;
  }): Promise<{ plugin: InstalledPlugin; skills: number }> {
    const { from, name, marketplace, folder, directSourceId } = what;
    const read = readManifest(from);
    if (read && !read.ok) throw new TroupeError("usage", `${join(from, read.path)}: ${read.problem}`);
    const manifest = read?.manifest ?? {};
    if (manifest.name !== undefined && manifest.name !== name) {
      throw new TroupeError("usage", `The plugin in ${from} is named ${manifest.name}, not ${name}.`);
    }
    if (!read && isEmpty(findParts(from, manifest, () => undefined))) {
      throw new TroupeError("usage", `${from} has neither a plugin.json nor any part of a plugin.`);
    }
    const to = join(this.#stateRoot, INSTALLED_PLUGINS, folder);
    await copyPlugin(from, to, { disk: this.#disk, stateRoot: this.#stateRoot });
    const version = manifest.version ?? what.version;
    const known = this.list().find((plugin) => plugin.folder === folder);
    const plugin: InstalledPlugin = {
      name,
      marketplace,
      enabled: known?.enabled ?? true,
      source: from,
      folder,
      ...defined({ directSourceId, version }),
      installedAt: new Date().toISOString(),
    };
    await this.#change((registry) => ({
      ...registry,
      plugins: [...registry.plugins.filter((other) => other.folder !== folder), plugin],
    }));
    return { plugin, skills: await countSkills(findParts(to, manifest, () => undefined).skillFolders) };
  }

  async #remove({ folder }: InstalledPlugin): Promise<void> {
    await this.#change((registry) => ({
      ...registry,
      plugins: registry.plugins.filter((plugin) => plugin.folder !== folder),
    }));
    await this.#disk.remove(join(this.#stateRoot, INSTALLED_PLUGINS, folder));
  }

  #find(wanted: string, directSourceId?: string): InstalledPlugin {
    const fits = ({ name, marketplace, directSourceId: id }: InstalledPlugin): boolean =>
      (wanted === name || wanted === `${name}@${marketplace}`) &&
      (directSourceId === undefined || directSourceId === id);
    const [found, ...others] = this.list().filter(fits);
    if (!found) throw new TroupeError("usage", `No plugin ${wanted} is installed.`);
    if (others.length === 0) return found;
    const from = [found, ...others].map((plugin) => plugin.marketplace || plugin.source).join(", ");
    throw new TroupeError("usage", `Several plugins have the name ${wanted}, from ${from}: name the source, too.`);
  }

  #read(): Registry {
    const file = readRegistry(this.#stateRoot);
    if (file.kind === "damaged") throw this.#damaged(file.reason);
    const checked = registrySchema().safeParse(file.kind === "read" ? file.value : {});
    if (checked.success) return checked.data;
    const [issue] = checked.error.issues;
    throw this.#damaged(`has an error: ${issue?.path.join(".")}: ${issue?.message}`);
  }

  #damaged(reason: string): TroupeError {
    const message = `The list of installed plugins was not changed: ${registryPath(this.#stateRoot)} ${reason}.`;
    return new TroupeError("configuration", message, {
      hint: "Repair the file, or delete it to start with an empty list: plugins that are installed then stay enabled.",
    });
  }

  async #change(change: (registry: Registry) => Registry): Promise<void> {
    const path = registryPath(this.#stateRoot);
    await withFileLock({ path, disk: this.#disk, Failure: TroupeError }, async () => {
      await replaceFile(this.#disk, path, `${JSON.stringify(change(this.#read()), null, 2)}\n`);
    });
  }
}

function nameOf(folder: string): string {
  const read = readManifest(folder);
  const name = (read?.ok ? read.manifest.name : undefined) ?? folder.split(/[\\/]/).at(-1) ?? "";
  if (isPluginName(name)) return name;
  throw new TroupeError("usage", `The plugin in ${folder} has no valid name. Set name in its plugin.json.`);
}
