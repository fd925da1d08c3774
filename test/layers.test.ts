import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";

/** Who may import whom: surfaces → motion → parts → words. A folder that is not listed on the right is out of reach. */
const mayImport: Record<string, readonly string[]> = {
  lib: [],
  protocol: ["lib"],
  model: ["protocol", "lib"],
  store: ["protocol", "lib"],
  tools: ["protocol", "lib"],
  context: ["protocol", "lib"],
  permissions: ["protocol", "lib"],
  hooks: ["protocol", "lib"],
  agents: ["protocol", "lib"],
  commands: ["protocol", "lib"],
  extensions: ["protocol", "lib"],
  catalog: ["agents", "hooks", "context", "tools", "protocol", "lib"],
  telemetry: ["protocol", "lib"],
  view: ["protocol", "lib"],
  loop: ["model", "tools", "protocol", "lib"],
  tasks: ["tools", "protocol", "lib"],
  factories: ["protocol", "lib"],
  session: [
    "loop",
    "tasks",
    "factories",
    "agents",
    "commands",
    "context",
    "permissions",
    "hooks",
    "tools",
    "model",
    "store",
    "protocol",
    "lib",
  ],
  runtime: [
    "session",
    "loop",
    "tasks",
    "factories",
    "agents",
    "commands",
    "catalog",
    "extensions",
    "context",
    "permissions",
    "hooks",
    "telemetry",
    "tools",
    "model",
    "store",
    "protocol",
    "lib",
  ],
  server: ["runtime", "session", "factories", "context", "model", "protocol", "lib"],
  sdk: ["view", "protocol", "lib"],
  acp: ["sdk", "protocol", "lib"],
  cli: [
    "view",
    "acp",
    "sdk",
    "server",
    "runtime",
    "session",
    "agents",
    "commands",
    "catalog",
    "context",
    "model",
    "protocol",
    "lib",
  ],
  testing: ["model", "store", "protocol", "lib"],
};

const MAX_LINES = 400;
const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
  (path) => /\.ts$/.test(path) && !path.endsWith(".d.ts"),
);
const production = sources.filter((path) => !path.endsWith(".test.ts"));
const read = (path: string): string => readFileSync(join("src", path), "utf8");

/** Static and dynamic imports alike. */
function importedFolders(path: string): string[] {
  return [...read(path).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)]
    .map(([, specifier = ""]) => normalize(join(dirname(path), specifier)).split("/")[0] ?? "")
    .filter((target) => target !== path.split("/")[0]);
}

describe("imports point one way", () => {
  it.each(production)("%s", (path) => {
    const [folder = ""] = path.split("/");
    expect(mayImport, `src/${folder} is not in the table`).toHaveProperty(folder);
    expect(importedFolders(path).filter((target) => !mayImport[folder]?.includes(target))).toEqual([]);
  });

  it("keeps node out of lib, protocol and view, but for lib/node", () => {
    const pure = production.filter((path) => /^(lib|protocol|view)\//.test(path) && !path.startsWith("lib/node/"));
    expect(pure.filter((path) => read(path).includes('from "node:'))).toEqual([]);
  });
});

describe("files stay short enough to read in one sitting", () => {
  it.each(sources)("%s", (path) => {
    expect(read(path).split("\n").length).toBeLessThanOrEqual(MAX_LINES);
  });
});

describe("lists are complete", () => {
  it("names every file that defines a tool in tools/builtin.ts", () => {
    const defining = production.filter(
      // Tools about MCP servers are offered with the servers, not to everyone.
      (path) => /^tools\/(?!mcp\/|tool\.ts)/.test(path) && /\bdefineTool\(/.test(read(path)),
    );
    expect(defining.length).toBeGreaterThan(2);
    const list = read("tools/builtin.ts");
    expect(defining.filter((path) => !list.includes(`"./${basename(path)}"`))).toEqual([]);
  });

  it("names every provider file in model/providers/list.ts", () => {
    const list = read("model/providers/list.ts");
    const files = production.filter(
      (path) => path.startsWith("model/providers/") && !/(list|definition)\.ts$/.test(path),
    );
    expect(files.filter((path) => !list.includes(`"./${basename(path)}"`))).toEqual([]);
  });
});

describe("house rules", () => {
  it("has no barrels but the package entries", () => {
    const barrels = production.filter((path) => basename(path) === "index.ts");
    expect(barrels.sort()).toEqual([
      "protocol/index.ts",
      "runtime/index.ts",
      "sdk/index.ts",
      "server/index.ts",
      "testing/index.ts",
    ]);
  });

  it("lets only the seams change files: lib/node/disk.ts for the runtime, lib/node/paths-write.ts for tools", () => {
    const names =
      "writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream|write|writeSync|rename|renameSync|unlink|unlinkSync|rm|rmSync|mkdir|mkdirSync|truncate|ftruncate|symlink|link|copyFile|cp|chmod";
    const imported = new RegExp(`import \\{[^}]*\\b(${names})\\b[^}]*\\} from "node:fs(/promises)?"`);
    const called = new RegExp(`\\bfs\\.(promises\\.)?(${names})\\(`);
    const direct = production.filter(
      (path) => imported.test(read(path)) || (read(path).includes('from "node:fs') && called.test(read(path))),
    );
    expect(direct.filter((path) => !path.startsWith("testing/"))).toEqual([
      "lib/node/disk.ts",
      "lib/node/paths-write.ts",
      "lib/node/remove-tree.ts",
      // Runs alone after a kill, from its own source text.
      "tools/shell/clean-up.ts",
      "tools/shell/left-behind.ts",
    ]);
  });

  it("has no module-level variables that change", () => {
    expect(production.filter((path) => /^(export )?let /m.test(read(path)))).toEqual([]);
  });
});
