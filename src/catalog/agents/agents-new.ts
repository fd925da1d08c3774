/** Writes the file of a new agent from a template that explains every field. */
import { join } from "node:path";
import { findAgent, nameProblem, normaliseName } from "../../agents/names.ts";
import { type Disk, writeNewFile } from "../../lib/node/disk.ts";
import { openAsIs } from "../../lib/node/paths-write.ts";
import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type AgentSources, loadAgents } from "./agents.ts";
import { PROJECT_FOLDERS, userFolder } from "./agents-locations.ts";
import template from "./agents-new.md";

export interface NewAgent {
  readonly name: string;
  readonly scope: "user" | "project";
  readonly sources: AgentSources;
  readonly disk: Disk;
}

/** Returns the path of the written file. Throws if the file, or an agent of that name, exists. */
export async function writeNewAgent({ name, scope, sources, disk }: NewAgent): Promise<string> {
  const problem = nameProblem(name.trim());
  if (problem) throw new TroupeError("usage", `"${clip(name, 80)}" cannot be the name of an agent: ${problem}.`);
  const { agents, disabled } = await loadAgents(sources);
  const earlier = findAgent(name, [...agents, ...disabled]);
  if (earlier) {
    const where = earlier.path ?? (earlier.source === "builtin" ? "built in" : earlier.source);
    throw new TroupeError("usage", `The agent ${earlier.name} already exists (${where}).`, {
      hint: "Choose another name.",
    });
  }
  const fileName = `${normaliseName(name).replace(/[^\p{L}\p{M}\p{N}.-]+/gu, "-")}.md`;
  const text = Buffer.from(template.replace("{{name}}", () => JSON.stringify(name.trim())));
  const root = sources.gitRoot ?? sources.cwd;
  const folder = scope === "user" ? userFolder(sources.stateRoot) : join(root, PROJECT_FOLDERS[0]);
  const path = join(folder, fileName);
  try {
    await (scope === "user" ? writeOwn(path, { folder, text, disk }) : writeShared(path, { root, text, disk }));
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("storage", `${path} could not be written: ${why}`, { cause });
  }
  return path;
}

async function writeOwn(path: string, { folder, text, disk }: { folder: string; text: Uint8Array; disk: Disk }) {
  await disk.mkdir(folder);
  await writeNewFile(disk, path, [text]).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EEXIST" ? isThere(path) : error;
  });
}

/** Writes into the repository, readable for others. A link in the path cannot lead out of it. */
async function writeShared(path: string, { root, text, disk }: { root: string; text: Uint8Array; disk: Disk }) {
  const target = await openAsIs(path, { cwd: root, roots: [root], disk });
  try {
    if (target.stat !== undefined) throw isThere(path);
    await target.write(text, { mode: 0o644 });
  } finally {
    await target.close();
  }
}

const isThere = (path: string): TroupeError =>
  new TroupeError("usage", `${path} already exists.`, { hint: "Edit it, or choose another name." });
