/** Facts about the machine and a worker's folder. Detected once for each folder of a session. */
import { statSync } from "node:fs";
import { EOL } from "node:os";
import { basename, delimiter, join, sep } from "node:path";

export interface EnvironmentFacts {
  readonly os: string;
  readonly arch: string;
  readonly defaultShell: string;
  readonly availableShells: readonly string[];
  readonly pathSeparator: string;
  readonly lineEnding: "LF" | "CRLF";
  readonly gitAvailable: boolean;
  readonly workspaceRoot: string;
}

const SHELLS = ["bash", "zsh", "fish", "dash", "sh", "pwsh"];

export class Environments {
  readonly #known = new Map<string, EnvironmentFacts>();
  readonly #variables: Readonly<Record<string, string | undefined>>;

  constructor(variables: Readonly<Record<string, string | undefined>> = process.env) {
    this.#variables = variables;
  }

  /** Returns whether this folder was already examined. */
  has(root: string): boolean {
    return this.#known.has(root);
  }

  detect(root: string): EnvironmentFacts {
    const facts = this.#known.get(root) ?? this.#look(root);
    this.#known.set(root, facts);
    return facts;
  }

  #look(workspaceRoot: string): EnvironmentFacts {
    const { PATH = "", SHELL } = this.#variables;
    const folders = PATH.split(delimiter).filter((folder) => folder !== "");
    const isThere = (program: string): boolean => folders.some((folder) => isFile(join(folder, program)));
    const availableShells = SHELLS.filter(isThere);
    return {
      os: process.platform,
      arch: process.arch,
      defaultShell: SHELL ? basename(SHELL) : (availableShells[0] ?? "none"),
      availableShells,
      pathSeparator: sep,
      lineEnding: EOL === "\n" ? "LF" : "CRLF",
      gitAvailable: isThere("git"),
      workspaceRoot,
    };
  }
}

/** Returns false for a file in an unreadable folder. */
function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return false;
  }
}
