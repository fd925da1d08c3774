import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { blocksIn } from "./blocks.ts";

const root = resolve(".");
const entries = { sdk: "sdk", server: "server", testing: "testing", protocol: "protocol" };
const folders: string[] = [];
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

/** Type-checks programs and the files of examples/ in one run of the compiler. Returns its errors. */
async function compile(programs: readonly { readonly name: string; readonly code: string }[]): Promise<string> {
  const cache = join(root, "node_modules", ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "examples-"));
  folders.push(folder);
  await Promise.all(programs.map(({ name, code }) => writeFile(join(folder, `${name}.ts`), `${code}export {};\n`)));
  const paths = Object.entries(entries).map(([name, from]) => [
    `troupe/${name}`,
    [join(root, "src", from, "index.ts")],
  ]);
  const examples = (await readdir(join(root, "examples"))).filter((name) => name.endsWith(".ts"));
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      paths: { ...Object.fromEntries(paths), troupe: [join(root, "src", "runtime", "index.ts")] },
      noUnusedLocals: false,
      lib: ["ES2023", "ESNext.Disposable"],
      incremental: false,
    },
    files: [
      ...(await readdir(folder)),
      ...examples.map((name) => join(root, "examples", name)),
      join(root, "src", "markdown.d.ts"),
      join(root, "src", "version.d.ts"),
    ],
    include: [],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  return promisify(execFile)(process.execPath, [tsc, "-p", folder]).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

describe("TypeScript in the documentation and in examples/", () => {
  it("passes the type checker, which finds a wrong member", { timeout: 180_000 }, async () => {
    const programs = blocksIn("ts").map(({ at, content }) => ({
      name: at.replaceAll(/[^a-z0-9]+/g, "-"),
      code: content,
    }));
    expect(programs.length).toBeGreaterThan(8);
    const wrong = {
      name: "wrong",
      code: 'import { createClient } from "troupe/sdk";\nconsole.log((await createClient()).contents);\n',
    };
    const complaints = (await compile([...programs, wrong])).trim().split("\n");
    expect(complaints).toEqual([expect.stringMatching(/wrong\.ts.*contents/)]);
  });
});
