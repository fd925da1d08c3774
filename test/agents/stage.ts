import { type AgentCatalog, type AgentSources, loadAgents } from "../../src/catalog/agents/agents.ts";
import { type FileTree, type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";

/** A repository `work`, a home `home`, and the state root `home/.troupe`. */
export interface AgentStage extends AsyncDisposable {
  readonly folder: TempFolder;
  readonly sources: AgentSources;
  at(path: string): string;
  load(more?: Partial<AgentSources>): Promise<AgentCatalog>;
}

export async function agentStage(tree: FileTree = {}): Promise<AgentStage> {
  const folder = await tempFolder({ "work/.git/HEAD": "ref: refs/heads/main\n", "home/.keep": "", ...tree });
  const sources = {
    cwd: folder.at("work"),
    gitRoot: folder.at("work"),
    stateRoot: folder.at("home/.troupe"),
    home: folder.at("home"),
  };
  return {
    folder,
    sources,
    at: folder.at,
    load: (more = {}) => loadAgents({ ...sources, ...more }),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

/** A plain file of an agent. */
export function agent(name: string, more = "", description = `What ${name} does`): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n\nYou are ${name}.\n`;
}

/** The custom agents only, with who brought them. */
export const customNames = ({ agents }: AgentCatalog): string[] =>
  agents.filter(({ source }) => source !== "builtin").map(({ name, source }) => `${name} (${source})`);
