/** Marketplaces: local folders with a `marketplace.json` that lists the plugins in them. */
import { join } from "node:path";
import * as z from "zod";
import { isPluginName } from "../../catalog/plugins/plugin-manifest.ts";
import { readFolder } from "../../context/skills/read-inside.ts";
import { parseJson } from "../../lib/json.ts";
import { isInside } from "../../lib/node/paths.ts";
import { realPath } from "../../lib/node/real-path.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { TroupeError } from "../../protocol/errors.ts";

const PLACES = ["marketplace.json", ".github/plugin/marketplace.json", ".claude-plugin/marketplace.json"];
const MAX_BYTES = 1024 * 1024;
const MAX_PLUGINS = 1_000;

const schema = () =>
  z.object({
    name: z.string().refine(isPluginName, "must have letters, digits, dots, dashes or underscores"),
    plugins: z
      .array(
        z.object({
          name: z.string().refine(isPluginName, "must have letters, digits, dots, dashes or underscores"),
          source: z.unknown(),
          description: z.string().max(1024).exactOptional(),
          version: z.string().max(64).exactOptional(),
        }),
      )
      .max(MAX_PLUGINS),
  });
export type Marketplace = z.infer<ReturnType<typeof schema>> & { readonly root: string };
type Offered = Marketplace["plugins"][number];

/** Throws a `TroupeError` that describes the problem. */
export function readMarketplace(folder: string): Marketplace {
  const root = realPath(folder);
  if (root === undefined) throw new TroupeError("usage", `There is no folder ${folder}.`);
  for (const path of PLACES) {
    const file = readSmallFile(join(root, path), { maxBytes: MAX_BYTES, below: root });
    if (file.kind === "missing") continue;
    if (file.kind === "refused") throw new TroupeError("usage", `${join(root, path)} ${file.reason}.`);
    const json = parseJson(file.text.replace(/^\ufeff/, ""));
    const checked = schema().safeParse(json.ok ? json.value : undefined);
    if (!checked.success) {
      const [issue] = checked.error.issues;
      const what = json.ok ? `${issue?.path.join(".")}: ${issue?.message}` : json.error;
      throw new TroupeError("usage", `${join(root, path)} is not a list of plugins: ${what}`);
    }
    return { ...checked.data, root };
  }
  throw new TroupeError("usage", `${folder} has no marketplace.json.`);
}

/** Returns the user's own marketplace: all plugin folders below the state root's `marketplace` folder. */
export function ownMarketplace(root: string, name: string): Marketplace {
  const entries = readFolder(root, MAX_PLUGINS)?.entries ?? [];
  const folders = entries.filter((entry) => entry.kind === "folder" && isPluginName(entry.name));
  return { name, root, plugins: folders.map((entry) => ({ name: entry.name, source: `./${entry.name}` })) };
}

/** Returns the folder of a plugin. Throws if it is outside of the marketplace. */
export function pluginFolderOf({ root, name }: Marketplace, plugin: Offered): string {
  const { source } = plugin;
  const folder = typeof source === "string" && !source.includes("\0") ? realPath(join(root, source)) : undefined;
  if (folder === undefined || !isInside(folder, [root])) {
    throw new TroupeError("usage", `The plugin ${plugin.name} is not in the folder of ${name}.`, {
      hint: "Nothing is fetched from elsewhere: get a copy of it and install that folder.",
    });
  }
  return folder;
}
