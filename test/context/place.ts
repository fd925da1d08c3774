import { type InstructionRequest, type Instructions, readInstructions } from "../../src/context/instructions.ts";
import { workingDirectory } from "../../src/context/working-directory.ts";
import { type FileTree, type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";

export interface Place extends AsyncDisposable {
  readonly folder: TempFolder;
  read(request?: Partial<InstructionRequest> & { cwd?: string }): Promise<Instructions>;
}

/** A git repository in `project`, the state root in `home`, and anything else beside them. */
export async function place(tree: FileTree = {}): Promise<Place> {
  const folder = await tempFolder({ "project/.git/HEAD": "ref: refs/heads/main\n", "home/.keep": "", ...tree });
  return {
    folder,
    read: ({ cwd = "project", ...request } = {}) =>
      readInstructions({
        context: workingDirectory(folder.at(cwd)),
        stateRoot: folder.at("home"),
        environment: {},
        ...request,
      }),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

/** The blocks of a text, by their path. */
export function blocksIn(text: string): Record<string, string> {
  const blocks = text.matchAll(/^<instruction_file path="([^"]*)"[^>]*>\n([\s\S]*?)\n<\/instruction_file>$/gm);
  return Object.fromEntries([...blocks].map(([, path = "", body = ""]) => [path, body]));
}
