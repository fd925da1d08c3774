/**
 * Images in the prompt. The path of an image that is pasted or dropped, and an image of the clipboard, stand in the text
 * as a marker; the file goes along with the prompt as an attachment.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { basename, extname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { nodeDisk, writeNewFile } from "../../lib/node/disk.ts";
import { safeLine } from "../screen/safe.ts";

const IMAGE = /\.(?:png|jpe?g|gif|webp)$/i;
const MAX_PATH = 4_096;
const MAX_BYTES = 20 * 1024 * 1024;
const CLIPBOARD_MS = 3_000;
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47]);

/** An image as it is sent: the model sees it, wherever the file is. */
export interface Attached {
  readonly type: "blob";
  readonly mimeType: string;
  readonly data: string;
  readonly displayName: string;
}

const MIME: Readonly<Record<string, string>> = {
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};

export class PromptImages {
  readonly #cwd: string;
  readonly #home: string;
  readonly #files = new Map<string, string>();
  #count = 0;

  constructor(home: string, cwd: string) {
    this.#home = home;
    this.#cwd = cwd;
  }

  /** The marker for a pasted text that is the path of an image; undefined for any other text. */
  async fromPaste(text: string): Promise<string | undefined> {
    const path = pathOf(text, this.#cwd);
    if (path === undefined) return undefined;
    const file = await stat(path).catch(() => undefined);
    return file?.isFile() && file.size <= MAX_BYTES ? this.#add(path) : undefined;
  }

  /** The marker for the image of the clipboard; undefined when there is none, or no program to read it. */
  async fromClipboard(environment: Readonly<Record<string, string | undefined>>): Promise<string | undefined> {
    const bytes = await clipboardImage(environment);
    if (!bytes) return undefined;
    const folder = join(this.#home, "pasted");
    const path = join(folder, `${randomBytes(8).toString("hex")}.png`);
    await nodeDisk.mkdir(folder);
    await writeNewFile(nodeDisk, path, [bytes]);
    return this.#add(path);
  }

  /** Paths of the images whose markers are in the text. */
  pathsIn(text: string): readonly string[] {
    return [...this.#files].filter(([marker]) => text.includes(marker)).map(([, path]) => path);
  }

  /** Rejects when a file cannot be read any more. */
  async attachedTo(text: string): Promise<readonly Attached[]> {
    return Promise.all(
      this.pathsIn(text).map(async (path) => ({
        type: "blob" as const,
        mimeType: MIME[extname(path).slice(1).toLowerCase()] ?? "image/png",
        data: (await readFile(path)).toString("base64"),
        displayName: basename(path),
      })),
    );
  }

  #add(path: string): string {
    const marker = `[image #${++this.#count} ${safeLine(basename(path)).slice(0, 60)}]`;
    this.#files.set(marker, path);
    return marker;
  }
}

/** Terminals quote a dropped path, escape its blanks, or send it as an address. */
export function pathOf(text: string, cwd: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_PATH || trimmed.includes("\n") || !IMAGE.test(trimmed.replace(/["']$/, "")))
    return undefined;
  const quoted = /^(["'])(.*)\1$/.exec(trimmed)?.[2];
  const path = quoted ?? trimmed.replaceAll(/\\(.)/g, "$1");
  if (path.startsWith("file://")) {
    try {
      return fileURLToPath(path);
    } catch {
      return undefined;
    }
  }
  return isAbsolute(path) ? path : resolve(cwd, path);
}

const run = promisify(execFile);

/** Asks the programs that can read the clipboard, one after the other. */
async function clipboardImage(environment: Readonly<Record<string, string | undefined>>): Promise<Buffer | undefined> {
  const programs: readonly (readonly [string, readonly string[]])[] =
    process.platform === "darwin"
      ? [["pngpaste", ["-"]]]
      : [
          ...(environment.WAYLAND_DISPLAY ? [["wl-paste", ["--no-newline", "--type", "image/png"]] as const] : []),
          ["xclip", ["-selection", "clipboard", "-target", "image/png", "-out"]],
        ];
  for (const [program, args] of programs) {
    const options = {
      encoding: "buffer",
      timeout: CLIPBOARD_MS,
      maxBuffer: MAX_BYTES,
      env: { ...environment },
    } as const;
    const { stdout } = await run(program, args, options).catch(() => ({ stdout: undefined }));
    if (stdout?.subarray(0, PNG.length).equals(PNG)) return stdout;
  }
  return undefined;
}
