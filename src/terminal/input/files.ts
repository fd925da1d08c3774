/** Files of the working folder for completion: ripgrep's list, which honours ignore rules. */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname } from "node:path";

const MAX_FILES = 50_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;
const FRESH_MS = 10_000;

export class FileList {
  readonly #cwd: string;
  readonly #onChange: () => void;
  #files: readonly string[] | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #isReading = false;

  constructor(cwd: string, onChange: () => void) {
    this.#cwd = cwd;
    this.#onChange = onChange;
  }

  /** The last list read; an old one is read again for the next call. */
  get current(): readonly string[] | undefined {
    if (!this.#isReading && performance.now() - this.#readAt > FRESH_MS) void this.#read();
    return this.#files;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    const files = await listFiles(this.#cwd).catch(() => []);
    const folders = new Set<string>();
    for (const file of files) {
      for (let folder = dirname(file); folder !== "."; folder = dirname(folder)) folders.add(`${folder}/`);
    }
    this.#files = [...files, ...folders].sort((one, other) => one.length - other.length);
    this.#readAt = performance.now();
    this.#isReading = false;
    this.#onChange();
  }
}

/** Paths relative to the folder; at most `MAX_FILES`. */
async function listFiles(cwd: string): Promise<string[]> {
  const child = spawn(ripgrepPath(), ["--no-config", "--files", "--hidden", "--no-messages", "--glob=!.git"], {
    cwd,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let text = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    text += chunk;
    if (text.length > MAX_CHARACTERS) child.kill();
  });
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve());
  });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(0, MAX_FILES);
}

function ripgrepPath(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("@vscode/ripgrep"));
  return require.resolve(`@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`);
}
