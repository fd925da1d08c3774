import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { read } from "./documents.ts";

const root = resolve(".");
const entries = { sdk: "sdk", server: "server", testing: "testing", protocol: "protocol" };
const folders: string[] = [];
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

/** The examples of a page, each as a program of its own. */
function examplesOf(page: string): string[] {
  return [...read(page).matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
}

/** What the compiler says of them; nothing when all is well. */
async function compile(examples: readonly string[]): Promise<string> {
  const cache = join(root, "node_modules", ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "examples-"));
  folders.push(folder);
  await Promise.all(
    examples.map((code, index) => writeFile(join(folder, `example-${index + 1}.ts`), `${code}export {};\n`)),
  );
  const paths = Object.entries(entries).map(([name, from]) => [
    `troupe/${name}`,
    [join(root, "src", from, "index.ts")],
  ]);
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: { paths: Object.fromEntries(paths), noUnusedLocals: false, lib: ["ES2023", "ESNext.Disposable"] },
    files: [...(await readdir(folder)), join(root, "src", "markdown.d.ts"), join(root, "src", "version.d.ts")],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  return promisify(execFile)(process.execPath, [tsc, "-p", folder]).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

describe("examples in the guides", () => {
  it("compile as they stand, and would be caught if they did not", { timeout: 120_000 }, async () => {
    const examples = examplesOf("docs/reference/sdk.md");
    expect(examples.length).toBeGreaterThan(4);
    const [first = ""] = examples;
    const wrong = first.replace("data.content", "data.contents");
    const complaints = (await compile([...examples, wrong])).trim().split("\n");
    expect(complaints).toHaveLength(1);
    expect(complaints[0]).toContain(`example-${examples.length + 1}.ts`);
    expect(complaints[0]).toContain("contents");
  });
});
