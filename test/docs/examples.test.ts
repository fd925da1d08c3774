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

/** Runs the compiler. Returns its errors. */
function tsc(...args: readonly string[]): Promise<string> {
  const program = join(root, "node_modules", "typescript", "bin", "tsc");
  return promisify(execFile)(process.execPath, [program, ...args]).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

/**
 * Type-checks programs and the files of examples/ against the declarations that the package publishes. Returns the
 * errors. The sources behind the declarations are not checked again: `npm run check` does that.
 */
async function compile(programs: readonly { readonly name: string; readonly code: string }[]): Promise<string> {
  const cache = join(root, "node_modules", ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "examples-"));
  folders.push(folder);
  await Promise.all(programs.map(({ name, code }) => writeFile(join(folder, `${name}.ts`), `${code}export {};\n`)));
  const types = join(folder, "types");
  const refused = await tsc("-p", join(root, "tsconfig.build.json"), "--noCheck", "--outDir", types);
  if (refused !== "") return refused;
  const typesOf = (from: string): string[] => [join(types, from, "index.d.ts")];
  const paths = Object.entries(entries).map(([name, from]) => [`troupe/${name}`, typesOf(from)]);
  const examples = (await readdir(join(root, "examples"))).filter((name) => name.endsWith(".ts"));
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      paths: { ...Object.fromEntries(paths), troupe: typesOf("runtime") },
      noUnusedLocals: false,
      lib: ["ES2023", "ESNext.Disposable"],
      incremental: false,
    },
    files: [...programs.map(({ name }) => `${name}.ts`), ...examples.map((name) => join(root, "examples", name))],
    include: [],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  return tsc("-p", folder);
}

describe("TypeScript in the documentation and in examples/", () => {
  it("TypeScript in the documentation passes the type checker, which reports a wrong member", async () => {
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
