/** Reads agent files into definitions. */

import { type AgentDefinition, MAX_AGENT_BYTES } from "../../agents/agent.ts";
import { type ParsedAgent, parseAgent } from "../../agents/parse-agent.ts";
import { defined } from "../../lib/defined.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { agentFrontmatter } from "./agents-frontmatter.ts";
import type { AgentFile } from "./agents-locations.ts";
import type { NoteAgent } from "./agents-notice.ts";

/** Returns undefined if the file does not exist. */
export async function readAgentFile(file: AgentFile): Promise<ParsedAgent | undefined> {
  const { path, id, root, location } = file;
  const read = readSmallFile(path, { maxBytes: MAX_AGENT_BYTES, ...defined({ below: root }) });
  if (read.kind === "missing") return undefined;
  if (read.kind === "refused") return { ok: false, line: 1, message: `it ${read.reason}` };
  return parseAgent(read.text, {
    id,
    path,
    source: location.source,
    ...defined({ pluginName: location.pluginName }),
    read: agentFrontmatter,
  });
}

/** Returns the valid agents, and a notice for each problem in a file. */
export async function readAgentFiles(files: readonly AgentFile[], note: NoteAgent): Promise<AgentDefinition[]> {
  const agents: AgentDefinition[] = [];
  for (const file of files) {
    const parsed = await readAgentFile(file);
    if (parsed === undefined) continue;
    const atLine = (line: number, message: string): string => `${file.path}:${line}: ${message}.`;
    if (parsed.ok) {
      for (const { line, message } of parsed.warnings)
        note({ kind: "field", path: file.path, message: atLine(line, message) });
      agents.push(parsed.agent);
    } else {
      const message = `The agent ${file.id} is not used: ${atLine(parsed.line, parsed.message)}`;
      note({ kind: "broken", path: file.path, message });
    }
  }
  return agents;
}
