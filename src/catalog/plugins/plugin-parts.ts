/** Locates the parts of a plugin, from its manifest or in the default folders, never outside of the plugin. */
import * as fs from "node:fs";
import { isAbsolute, join } from "node:path";
import { isInside } from "../../lib/node/paths.ts";
import { clip } from "../../lib/text.ts";
import type { Manifest, ManifestPart } from "./plugin-manifest.ts";

/** A file with a part of the configuration, or the part itself from the manifest. */
type PluginPart =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "inline"; readonly value: Readonly<Record<string, unknown>> };

export interface PluginParts {
  readonly skillFolders: readonly string[];
  readonly agentFolders: readonly string[];
  readonly commandFolders: readonly string[];
  readonly hooks: readonly PluginPart[];
  readonly mcpServers: readonly PluginPart[];
}

/** Returns real paths; `root` must be one. Calls `complain` for paths in the manifest that do not exist. */
export function findParts(root: string, manifest: Manifest, complain: (problem: string) => void): PluginParts {
  const folders = (named: readonly string[] | undefined, usual: string): string[] =>
    named === undefined ? existing(root, [usual], "folder", ignore) : existing(root, named, "folder", complain);
  const parts = (named: ManifestPart | undefined, usual: readonly string[]): PluginPart[] => {
    if (named?.kind === "inline") return [{ kind: "inline", value: named.value }];
    const files = named
      ? existing(root, named.paths, "file", complain)
      : existing(root, usual, "file", ignore).slice(0, 1);
    return files.map((path) => ({ kind: "file", path }));
  };
  return {
    // A plugin can itself be one skill.
    skillFolders: [
      ...(manifest.skills === undefined && "path" in locate(root, "SKILL.md", "file") ? [root] : []),
      ...folders(manifest.skills, "skills"),
    ],
    agentFolders: folders(manifest.agents, "agents"),
    commandFolders: folders(manifest.commands, "commands"),
    hooks: parts(manifest.hooks, ["hooks.json", "hooks/hooks.json"]),
    mcpServers: parts(manifest.mcpServers, [".mcp.json"]),
  };
}

export function isEmpty(parts: PluginParts): boolean {
  return Object.values(parts).every((list) => list.length === 0);
}

function existing(
  root: string,
  paths: readonly string[],
  kind: "file" | "folder",
  complain: (problem: string) => void,
): string[] {
  const found = paths.flatMap((path) => {
    const result = locate(root, path, kind);
    if ("problem" in result) complain(`${JSON.stringify(clip(path, 200))} ${result.problem}`);
    return "path" in result ? [result.path] : [];
  });
  return [...new Set(found)];
}

function locate(root: string, path: string, kind: "file" | "folder"): { path: string } | { problem: string } {
  const leaves = { problem: "is outside the plugin, so it is not used." };
  if (isAbsolute(path) || /^(?:[A-Za-z]:|[\\/~])/.test(path) || path.includes("\0")) return leaves;
  if (path.split(/[\\/]/).includes("..") || !isInside(join(root, path), [root])) return leaves;
  try {
    const real = fs.realpathSync.native(join(root, path));
    if (!isInside(real, [root])) return leaves;
    const stat = fs.statSync(real);
    return (kind === "file" ? stat.isFile() : stat.isDirectory()) ? { path: real } : { problem: `is not a ${kind}.` };
  } catch {
    return { problem: "does not exist." };
  }
}

function ignore(): void {}
