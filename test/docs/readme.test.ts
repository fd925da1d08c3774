import { existsSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { options } from "../../src/cli/options.ts";
import { isObject, parseJson } from "../../src/lib/json.ts";
import { isKnownType } from "../../src/protocol/event-kind.ts";
import { methods } from "../../src/server/methods/list.ts";
import { decodeLine } from "../../src/store/log/line.ts";
import {
  anchors,
  codeBlocks,
  documents,
  guides,
  inlineCode,
  read,
  relativeLinks,
  sources,
  tableBelow,
} from "./documents.ts";

const readme = read("README.md");
const architecture = read("ARCHITECTURE.md");

/** The pages that describe the code. They name files by their path below `src`. */
const codePages = ["ARCHITECTURE.md", ...guides.filter((path) => path.startsWith("docs/explanation/internals/"))];
const topFolders = readdirSync("src");

describe("README.md", () => {
  it.each(['npm ci && npm start -- -p "Explain how this repository is organised"', "npm ci && npm test"])(
    "README.md shows the command %s",
    (command) => {
      expect(codeBlocks(readme, "sh").map((block) => block.trim())).toContain(command);
    },
  );

  it("README.md is short enough to read whole", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(100);
  });
});

describe("docs/README.md", () => {
  const linked = relativeLinks(read("docs/README.md")).map((target) =>
    normalize(join("docs", target.split("#")[0] ?? "")),
  );

  it.each(guides.filter((path) => path !== "README.md"))("docs/README.md links to %s", (path) => {
    expect(linked).toContain(path);
  });
});

describe("a link in the documentation", () => {
  it.each(documents)("the links in a page of the documentation have a target: %s", (path) => {
    const markdown = read(path);
    const broken = relativeLinks(markdown).filter((target) => {
      const [file = "", anchor] = target.split("#");
      const found = file === "" ? path : normalize(join(dirname(path), file));
      if (!existsSync(found)) return true;
      return anchor !== undefined && !anchors(read(found)).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe("pages that the source names", () => {
  it("pages that the source names exist", () => {
    const folders = ["src", "scripts", "bin", "test", "examples"];
    const files = folders.flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((name) => /\.(ts|tsx|mjs|js|py|md)$/.test(name) && !name.includes("fixtures"))
        .map((name) => join(folder, name)),
    );
    const pages = /\bdocs\/(?:tutorials|how-to|reference|explanation|decisions|guides)\/[\w-]+\.md\b/g;
    const missing = files.flatMap((file) =>
      (read(file).match(pages) ?? []).filter((path) => !existsSync(path)).map((path) => `${file}: ${path}`),
    );
    expect(missing).toEqual([]);
  });
});

describe("a file that a comment of the source names", () => {
  it("files that a comment of the source names exist", () => {
    const all = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
    const top = (file: string): string | undefined => file.split("/")[0];
    const exists = (named: string, from: string): boolean =>
      all.some((file) => `/${file}`.endsWith(`/${named}`) && (named.includes("/") || top(file) === top(from)));
    const named = (file: string): string[] =>
      [...read(join("src", file)).matchAll(/^ *(?:\/?\*\*?|\/\/) .*$/gm)].flatMap(([comment]) =>
        [...comment.matchAll(/`((?:[\w-]+\/)*[\w-]+\.tsx?)`/g)].map(([, name = ""]) => name.replace(/^src\//, "")),
      );
    const missing = all.flatMap((file) =>
      named(file).flatMap((name) => (exists(name, file) ? [] : [`${file}: ${name}`])),
    );
    expect(missing).toEqual([]);
  });
});

describe("a name in the documentation", () => {
  it.each(guides)("flags in a page of the documentation exist: %s", (path) => {
    const named = new Set([...read(path).matchAll(/(?<![\w-])--([a-z][a-z-]+)/g)].map(([, name = ""]) => name));
    const known = options.map(({ name }) => name);
    expect([...named].filter((name) => !known.includes(name))).toEqual([]);
  });

  it.each(documents)("variables in a page of the documentation exist: %s", (path) => {
    const named = new Set(read(path).match(/\bTROUPE_[A-Z_]+[A-Z]\b/g));
    expect([...named].filter((variable) => !sources.some((source) => source.includes(variable)))).toEqual([]);
  });

  const notifications = ["session.event", "session.lifecycle"];
  const isOnWire = (name: string): boolean => name in methods || notifications.includes(name);

  it.each(documents)("events and methods in a page of the documentation exist: %s", (path) => {
    const groups = /^(session|user|system|assistant|tool|model|troupe|pending_messages)\.[a-z_]+$/;
    // test/server/sdk-surface.test.ts checks the list of events that are never sent.
    const text = read(path).replace(/^## Events that are never sent$[\s\S]*?(?=^## |(?![\s\S]))/m, "");
    const named = inlineCode(text).filter((code) => groups.test(code) && !/\.(ts|json|js|md)$/.test(code));
    expect(named.filter((name) => !isKnownType(name) && !isOnWire(name))).toEqual([]);
  });

  it.each(documents)("files in a page of the documentation exist: %s", (path) => {
    const named = inlineCode(read(path)).filter((code) => /^(src|test|docs|bin|scripts)\/[\w./-]+$/.test(code));
    expect(named.filter((file) => !existsSync(file))).toEqual([]);
  });

  it.each(codePages)("files and folders of src in a page of the documentation exist: %s", (path) => {
    const text = read(path);
    const drawn = ["", "text"].flatMap((language) =>
      codeBlocks(text, language).flatMap((block) => block.match(/\b[a-z-]+(?:\/[a-z-]+)+\.ts\b/g) ?? []),
    );
    const inText = inlineCode(text).filter(
      (code) => topFolders.includes(code.split("/")[0] ?? "") && code.includes("/"),
    );
    expect([...drawn, ...inText].filter((file) => !existsSync(join("src", file)))).toEqual([]);
  });
});

describe("ARCHITECTURE.md", () => {
  it("ARCHITECTURE.md is short enough to read in 20 minutes", () => {
    expect(Buffer.byteLength(architecture)).toBeLessThanOrEqual(36_000);
  });

  it("ARCHITECTURE.md has the import table that test/layers.test.ts enforces", () => {
    const [, table = ""] = read("test/layers.test.ts").match(/const mayImport[^{]*\{([\s\S]*?)^\};/m) ?? [];
    const enforced = [...table.matchAll(/^\s*(\w+): \[([^\]]*)\]/gm)].map(([, folder = "", list = ""]) => [
      folder,
      list.replaceAll('"', "").replace(/\s+/g, " ").replace(/,\s*$/, "").trim() || "–",
    ]);
    expect(enforced.length).toBeGreaterThan(5);
    const rows = tableBelow(architecture, "Who may import whom");
    expect(rows.map(([folder, imports]) => [folder, imports])).toEqual(enforced);
    expect(rows.filter(([folder = "", , start = ""]) => !start.includes(`](src/${folder}/`))).toEqual([]);
  });

  it("ARCHITECTURE.md assigns every folder of the table to a band", () => {
    const bands = tableBelow(architecture, "Four bands").flatMap(([, folders = ""]) =>
      folders.replaceAll("`", "").split(", "),
    );
    const folders = tableBelow(architecture, "Who may import whom").map(([folder = ""]) => folder);
    expect([...bands, "testing"].sort()).toEqual([...folders].sort());
  });
});

describe("an example in the documentation", () => {
  it("the example of a log has valid lines, checksums included", () => {
    const [example = ""] = codeBlocks(read("docs/explanation/durability.md"), "jsonl");
    const lines = example
      .trim()
      .split("\n")
      .map((line) => decodeLine(Buffer.from(line)));
    expect(lines).toMatchObject([
      { kind: "record", seq: 1, prev: 0 },
      { kind: "record", seq: 2, prev: lines[0]?.kind === "record" ? lines[0].crc : undefined },
    ]);
  });

  it("the documentation has the table of runtime dependencies of package.json", () => {
    const manifest = parseJson(read("package.json"));
    const dependencies = manifest.ok && isObject(manifest.value) ? manifest.value.dependencies : undefined;
    const rows = tableBelow(read("docs/decisions/0011-runtime-dependencies.md"), "Decision");
    expect(rows.map(([name = ""]) => name.replaceAll("`", "")).sort()).toEqual(Object.keys(dependencies ?? {}).sort());
  });
});

describe("decision records", () => {
  const pages = documents.filter((path) => path.startsWith("docs/decisions/"));

  it("decision records are numbered without gaps", () => {
    const numbers = pages.map((path) => Number(path.match(/(\d{4})-[a-z0-9-]+\.md$/)?.[1]));
    expect(numbers).toEqual(pages.map((_, index) => index + 1));
  });

  it.each(pages)("decision records have context, decision, consequences, alternatives and status: %s", (path) => {
    const page = read(path);
    expect(page).toMatch(/^# \d+\. .+\n\n\*\*Status:\*\* \w+/);
    expect([...page.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)).toEqual([
      "Context",
      "Decision",
      "Consequences",
      "Alternatives",
    ]);
  });
});
