/** Validates agent files, including those shadowed by another of the same name. */
import { statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { TroupeError } from "../../protocol/errors.ts";
import type { AgentSources } from "./agents.ts";
import { loadAgents } from "./agents.ts";
import { type AgentFile, agentFiles, agentId, agentLocations } from "./agents-locations.ts";
import { agentNotices } from "./agents-notice.ts";
import { readAgentFile } from "./agents-read.ts";

export interface AgentFileProblem {
  readonly path: string;
  readonly line: number;
  readonly kind: "error" | "warning";
  readonly message: string;
}

/** Checks all agent files of a session, or the named files and folders. Throws if a named path does not exist. */
export async function checkAgentFiles(
  sources: AgentSources,
  paths: readonly string[],
): Promise<{ readonly findings: readonly AgentFileProblem[]; readonly count: number }> {
  const { note, all } = agentNotices();
  const files =
    paths.length === 0
      ? agentFiles(agentLocations(sources), note)
      : paths.flatMap((path) => filesAt(resolve(sources.cwd, path), note));
  const findings: AgentFileProblem[] = [];
  for (const file of files) findings.push(...(await findingsIn(file)));
  const merged = paths.length === 0 ? (await loadAgents(sources)).notices.filter(({ kind }) => kind === "clash") : [];
  const others = [...all(), ...merged].map(({ kind, path, message }) => ({
    path,
    line: 1,
    kind: kind === "refused" ? ("error" as const) : ("warning" as const),
    message,
  }));
  return { findings: [...findings, ...others], count: files.length };
}

async function findingsIn(file: AgentFile): Promise<AgentFileProblem[]> {
  const { path } = file;
  const parsed = await readAgentFile(file);
  if (parsed === undefined) return [];
  if (!parsed.ok) return [{ path, line: parsed.line, kind: "error", message: parsed.message }];
  return parsed.warnings.map(({ line, message }) => ({ path, line, kind: "warning", message }));
}

function filesAt(path: string, note: ReturnType<typeof agentNotices>["note"]): AgentFile[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory()) return agentFiles([{ path, source: "user" }], note);
  const id = agentId(basename(path));
  if (!stat?.isFile()) throw new TroupeError("usage", `${path} does not exist.`);
  if (id === undefined) throw new TroupeError("usage", `${path} is not an agent file: its name must end in .md.`);
  return [{ location: { path: dirname(path), source: "user" }, path, id }];
}
