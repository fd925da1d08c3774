import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";

interface Source {
  readonly path: string;
  readonly text: string;
}

interface Shape {
  readonly LIMITS: { readonly filesPerFolder: number; readonly cycleFiles: number };
  readSources(root: string): readonly Source[];
  importsOf(source: Source): string[];
  filesPerFolder(sources: readonly Source[]): Map<string, number>;
  importCycles(sources: readonly Source[]): string[][];
  testTitles(source: Source): { readonly line: number; readonly title: string }[];
  titleProblem(title: string): string | undefined;
}

const shape = (await import(new URL("../scripts/shape.mjs", import.meta.url).href)) as Shape;

/** Allowed imports: interfaces → orchestration → components → contract. A folder that is not listed on the right is out of reach. */
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
  checkpoints: ["permissions", "tools", "protocol", "lib"],
  worktrees: ["checkpoints", "permissions", "protocol", "lib"],
  engine: ["protocol", "lib"],
  loop: ["model", "tools", "protocol", "lib"],
  tasks: ["tools", "protocol", "lib"],
  factories: ["protocol", "lib"],
  session: [
    "loop",
    "tasks",
    "factories",
    "checkpoints",
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
    "engine",
    "worktrees",
    "checkpoints",
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
  server: ["runtime", "session", "factories", "checkpoints", "context", "model", "protocol", "lib"],
  sdk: ["view", "protocol", "lib"],
  acp: ["sdk", "protocol", "lib"],
  terminal: ["sdk", "view", "protocol", "lib"],
  web: ["sdk", "view", "server", "runtime", "worktrees", "checkpoints", "context", "model", "store", "protocol", "lib"],
  cli: [
    "web",
    "terminal",
    "view",
    "acp",
    "sdk",
    "server",
    "runtime",
    "session",
    "worktrees",
    "checkpoints",
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

/**
 * Which subfolders of a folder may import their siblings. Files directly in the folder are open to all of them. A new
 * line here is a decision: prefer to move the shared part into the folder itself.
 */
const mayImportSibling: Record<string, Record<string, readonly string[]>> = {
  agents: {
    builtin: [],
  },
  catalog: {
    agents: [],
    plugins: [],
    settings: [],
  },
  cli: {
    cluster: ["output"],
    commands: ["cluster", "output"],
    completion: ["help", "output", "table"],
    config: ["output"],
    doctor: ["output"],
    help: ["output", "table"],
    init: ["output"],
    mcp: ["output"],
    output: [],
    usage: ["cluster", "output"],
    table: ["cluster", "commands", "completion", "config", "doctor", "help", "init", "mcp", "usage"],
  },
  commands: {
    delegation: [],
    schedule: [],
  },
  context: {
    board: ["memory"],
    memory: [],
    skills: [],
  },
  model: {
    "ai-sdk": ["wire"],
    faux: [],
    github: ["providers", "settings", "wire"],
    providers: [],
    settings: ["providers", "wire"],
    understudy: [],
    wire: [],
  },
  permissions: {
    shell: [],
  },
  protocol: {
    rpc: [],
  },
  runtime: {
    agents: ["knowledge", "mcp", "models", "permissions", "setup", "workspace"],
    cluster: ["permissions"],
    knowledge: ["agents", "setup"],
    mcp: ["permissions", "setup", "workspace"],
    models: [],
    permissions: ["setup"],
    sessions: [],
    setup: ["agents", "knowledge", "mcp", "models", "permissions", "sessions", "workspace"],
    workspace: ["permissions"],
  },
  server: {
    clients: ["extensions", "methods", "sessions"],
    extensions: ["clients", "sessions"],
    gateway: ["clients", "methods", "model-tunnel", "sessions"],
    methods: ["clients", "sessions"],
    "model-tunnel": [],
    sessions: ["clients", "extensions", "model-tunnel"],
  },
  session: {
    agents: ["budget", "requests", "turn"],
    budget: ["requests", "turn"],
    compaction: ["agents", "budget", "turn"],
    modes: ["turn"],
    requests: ["agents", "turn"],
    rewind: ["agents", "modes", "turn"],
    turn: ["agents", "budget", "compaction", "modes", "requests"],
  },
  store: {
    client: ["log"],
    index: [],
    log: [],
    postgres: ["log"],
  },
  testing: {
    wire: [],
  },
  terminal: {
    commands: ["input", "overlays", "screen", "transcript"],
    input: ["screen"],
    overlays: ["input", "panels", "screen", "transcript"],
    panels: ["screen", "transcript"],
    screen: [],
    transcript: ["screen"],
  },
  web: {
    page: [],
  },
  tools: {
    agents: ["coordination"],
    database: [],
    edit: ["files"],
    files: ["edit"],
    mcp: ["shell", "user", "web"],
    memory: [],
    shell: [],
    coordination: ["agents", "memory", "user"],
    user: [],
    web: [],
  },
};

const MAX_LINES = 400;
const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
  (path) => /\.tsx?$/.test(path) && !path.endsWith(".d.ts"),
);
const production = sources.filter((path) => !path.endsWith(".test.ts"));
const read = (path: string): string => readFileSync(join("src", path), "utf8");

/** Static and dynamic imports alike. */
const importedFiles = (path: string): string[] => shape.importsOf({ path, text: read(path) });

const importedFolders = (path: string): string[] =>
  importedFiles(path)
    .map((target) => target.split("/")[0] ?? "")
    .filter((target) => target !== path.split("/")[0]);

describe("imports point one way", () => {
  it.each(production)("the source file %s imports only what the table allows", (path) => {
    const [folder = ""] = path.split("/");
    expect(mayImport, `src/${folder} is not in the table`).toHaveProperty(folder);
    expect(importedFolders(path).filter((target) => !mayImport[folder]?.includes(target))).toEqual([]);
  });

  it("only lib/node imports node modules in lib, protocol and view", () => {
    const pure = production.filter((path) => /^(lib|protocol|view)\//.test(path) && !path.startsWith("lib/node/"));
    expect(pure.filter((path) => read(path).includes('from "node:'))).toEqual([]);
  });
});

describe("subfolders import the siblings that are listed", () => {
  const inSubfolders = production.filter((path) => path.split("/").length > 2 && path.split("/")[0] !== "lib");
  it.each(inSubfolders)("the subfolder %s imports only listed siblings", (path) => {
    const [folder = "", own = ""] = path.split("/");
    const siblings = importedFiles(path)
      .map((target) => target.split("/"))
      .filter(([top, sub, file]) => top === folder && file !== undefined && sub !== own)
      .map(([, sub = ""]) => sub);
    expect([...new Set(siblings)].filter((sub) => !mayImportSibling[folder]?.[own]?.includes(sub))).toEqual([]);
  });
});

describe("the source keeps its shape", () => {
  const read = shape.readSources(".");

  it("the source has at most 25 files of its own in each folder", () => {
    const counts = [...shape.filesPerFolder(read)];
    expect(counts.filter(([, count]) => count > shape.LIMITS.filesPerFolder)).toEqual([]);
  });

  it("the source has no import cycle of more than 5 files, types included", () => {
    expect(shape.importCycles(read).filter((cycle) => cycle.length > shape.LIMITS.cycleFiles)).toEqual([]);
  });
});

describe("titles of tests", () => {
  it("the check of titles finds every form of a test, but not a describe", () => {
    const text = [
      'describe("a group", () => {',
      '  it("one", f);',
      '  it.each([1])("two %i", f);',
      "  test.skipIf(isRoot)(`three`, f);",
      '  it.query("text", value);',
      "});",
    ].join("\n");
    const found = shape.testTitles({ path: "a.test.ts", text }).map(({ line, title }) => `${line} ${title}`);
    expect(found).toEqual(["2 one", "3 two %i", "4 three"]);
  });

  it("the check of titles refuses fewer than three words and a pronoun at the front, behind any ids", () => {
    const refused = [
      "entities",
      "can be",
      "ORC-01 MEM-02 fails",
      "that is missing is named",
      "I01: it never hangs at all",
    ];
    expect(refused.filter((title) => shape.titleProblem(title) === undefined)).toEqual([]);
    const accepted = ["denies a command", "LOOP-03 to LOOP-05 a turn ends", "%s is refused", "italics are kept"];
    expect(accepted.map((title) => shape.titleProblem(title))).toEqual(accepted.map(() => undefined));
  });
});

describe("files stay short enough to read in one sitting", () => {
  it.each(sources)("the file %s is not too long", (path) => {
    expect(read(path).split("\n").length).toBeLessThanOrEqual(MAX_LINES);
  });
});

describe("lists are complete", () => {
  it("every file that defines a tool is named in tools/builtin.ts or, for workers, in worker-tools.ts", () => {
    const defining = production.filter(
      // Tools about MCP servers are offered with the servers, not to everyone.
      (path) => /^tools\/(?!mcp\/|tool\.ts)/.test(path) && /\bdefineTool\(/.test(read(path)),
    );
    expect(defining.length).toBeGreaterThan(2);
    const list = `${read("tools/builtin.ts")}${read("tools/coordination/worker-tools.ts").replaceAll('"../', '"./')}`;
    expect(defining.filter((path) => !list.includes(`"./${path.replace("tools/", "")}"`))).toEqual([]);
  });

  it("model/providers/list.ts names every provider file", () => {
    const list = read("model/providers/list.ts");
    const files = production.filter(
      (path) => path.startsWith("model/providers/") && !/(list|definition)\.ts$/.test(path),
    );
    expect(files.filter((path) => !list.includes(`"./${basename(path)}"`))).toEqual([]);
  });
});

describe("house rules", () => {
  it("the source has no barrels but the package entries", () => {
    const barrels = production.filter((path) => basename(path) === "index.ts");
    expect(barrels.sort()).toEqual([
      "protocol/index.ts",
      "runtime/index.ts",
      "sdk/index.ts",
      "server/index.ts",
      "testing/index.ts",
    ]);
  });

  it("only lib/node/disk.ts, lib/node/paths-write.ts and listed exceptions change files", () => {
    const names =
      "(?:writeFile|appendFile|write|rename|unlink|rm|rmdir|mkdir|truncate|ftruncate|symlink|link|copyFile|cp|chmod|chown|utimes)(?:Sync)?|createWriteStream";
    const imported = new RegExp(`import \\{[^}]*\\b(${names})\\b[^}]*\\} from "node:fs(/promises)?"`);
    // Also on a module that comes as a parameter.
    const called = new RegExp(`\\b(fs|nodeFs)\\.(promises\\.)?(${names})\\(`);
    const direct = production.filter((path) => imported.test(read(path)) || called.test(read(path)));
    expect(direct.filter((path) => !path.startsWith("testing/"))).toEqual([
      "lib/node/disk.ts",
      "lib/node/paths-write.ts",
      "lib/node/remove-tree.ts",
      "tools/shell/sandbox/left-behind.ts",
      // Moves mount points synchronously, while it holds a lock.
      "tools/shell/sandbox/spare-points.ts",
      // Other processes run these from their source text. They get the module as a parameter.
      "tools/shell/sandbox/clean-up/changing.ts",
      "tools/shell/sandbox/clean-up/pinning.ts",
      "tools/shell/sandbox/clean-up/searching.ts",
    ]);
  });

  it("the source has no module-level variables that change", () => {
    expect(production.filter((path) => /^(export )?let /m.test(read(path)))).toEqual([]);
  });
});
