/** The files of the page. They are read once at the start by the names that are in the folder; no request names a path. */
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { TroupeError } from "../protocol/errors.ts";

export interface PageFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly gzipped: Buffer;
  /** Its name changes with its content. */
  readonly isHashed: boolean;
}

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};
const MAX_FILES = 200;

/** Returns the assets by the path of their address. Links and other files than those of the build are left out. */
export async function readAssets(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const assets = new Map<string, PageFile>();
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new TroupeError("failed", `The files of the page are not in ${folder}.`, {
      hint: "Install the package again, or run: npm run build",
      cause,
    });
  });
  for (const name of names.sort().slice(0, MAX_FILES)) {
    const type = types[/^[A-Za-z0-9_-]+\.(html|js|css|svg)$/.exec(name)?.[1] ?? ""];
    const path = join(folder, name);
    if (type === undefined || !(await lstat(path)).isFile()) continue;
    const plain = await readFile(path);
    const isHashed = /-[A-Z0-9]{8}\.(js|css)$/.test(name);
    assets.set(name === "index.html" ? "/" : `/${name}`, { type, plain, gzipped: gzipSync(plain), isHashed });
  }
  return assets;
}
