import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe("modules in packs", () => {
  it("modules in packs run once, when something of them is used for the first time", () => {
    const { said } = packed({
      "main.ts": `
        import { join } from "node:path";
        import { used } from "./used.ts";
        import { unused } from "./unused.ts";
        import text from "./text.md";
        import * as other from "./other.ts";
        globalThis.said("main");
        export const main = async () => {
          globalThis.said("called", text, join("a", "b"), other.name);
          used(); used();
          const { later } = await import("./later.ts");
          if (globalThis.never) unused();
          return later;
        };`,
      "used.ts": `globalThis.said("used runs"); export const used = () => globalThis.said("used");`,
      "unused.ts": `globalThis.said("unused runs"); export const unused = () => undefined;`,
      "other.ts": `export const name = "other";`,
      "later.ts": `globalThis.said("later runs"); export const later = 1;`,
      "text.md": "Grüße",
    });
    expect(said).toEqual(["main", "called Grüße a/b other", "used runs", "used", "used", "later runs"]);
  });

  it("modules in packs see each other's names although they import each other", () => {
    const { said } = packed({
      "main.ts": `
        import { even } from "./even.ts";
        export const main = async () => globalThis.said(String(even(4)));`,
      "even.ts": `import { odd } from "./odd.ts"; export const even = (n) => n === 0 || odd(n - 1);`,
      "odd.ts": `import { even } from "./even.ts"; export const odd = (n) => n !== 0 && even(n - 1);`,
    });
    expect(said).toEqual(["true"]);
  });

  it("modules in packs contain the used part of a package, and run it when it is used", () => {
    const { said, names } = packed({
      "main.ts": `
        import * as z from "zod";
        export const schema = () => z.string();
        export const main = async () => globalThis.said(String(schema().safeParse(1).success));`,
    });
    expect(said).toEqual(["false"]);
    expect(names).toEqual(["main.ts", "zod"]);
  });

  it.each([
    ["an import for its effects", `import "./effect.ts"; export const main = async () => undefined;`],
    ["everything of another module", `export * from "./effect.ts"; export const main = async () => undefined;`],
    ["a name that looks like the packer's", `export const import_x = 1; export const main = async () => import_x;`],
  ])("modules in packs are refused with %s", (_, source) => {
    const { error } = packed({ "main.ts": source, "effect.ts": "export const effect = 1;" });
    expect(error).toMatch(/pack: main\.ts has .*which packs do not hold/);
  });
});

/** What a program says that is packed into two: its entry, and all the rest. */
function packed(files: Record<string, string>): { said: string[]; names: string[]; error: string } {
  const root = mkdtempSync(join(tmpdir(), "troupe-pack-"));
  folders.push(root);
  symlinkSync(resolve("node_modules"), join(root, "node_modules"));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  const program = `
    import esbuild from "esbuild";
    import vm from "node:vm";
    import { createRequire } from "node:module";
    import { laterPack, modulesBehind, startPack } from ${JSON.stringify(resolve("scripts/pack.mjs"))};
    const options = { absWorkingDir: ${JSON.stringify(root)}, bundle: true, platform: "node", target: "node20.19",
      loader: { ".md": "text" }, define: {}, external: [], logLevel: "silent", charset: "ascii" };
    const modules = await modulesBehind("main.ts", { esbuild, root: ${JSON.stringify(root)}, options });
    const names = [...modules.keys()];
    const said = [];
    globalThis.said = (...words) => said.push(words.join(" "));
    const start = startPack(modules, { names: ["main.ts"], entry: "main.ts", later: ["rest"] });
    const rest = laterPack(modules, names.filter((name) => name !== "main.ts"));
    if (/[^\\u0000-\\u007f]/.test(start + rest)) throw new Error("not ASCII");
    const { main } = vm.runInThisContext(start)(createRequire(import.meta.url), () => () => vm.runInThisContext(rest), "");
    await main();
    console.log(JSON.stringify({ said, names }));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  return { said: [], names: [], ...(stdout !== "" && JSON.parse(stdout)), error: stderr };
}
