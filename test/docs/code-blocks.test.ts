import { transform } from "esbuild";
import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { parseAgent } from "../../src/agents/parse-agent.ts";
import { parseSettings } from "../../src/catalog/settings/settings-parse.ts";
import { parse } from "../../src/cli/args.ts";
import { commands } from "../../src/cli/command-list.ts";
import { parseHookFile } from "../../src/hooks/config.ts";
import { parseFrontmatter } from "../../src/lib/frontmatter.ts";
import { isObject, parseJson } from "../../src/lib/json.ts";
import { parseFauxScript } from "../../src/model/faux/faux-script.ts";
import { parseProvidersFile } from "../../src/model/settings/settings-file.ts";
import { readEntry } from "../../src/tools/mcp/config/config-entry.ts";
import { userOrigin } from "../hooks/stage.ts";
import { type Block, blocks, blocksIn } from "./blocks.ts";
import { read } from "./documents.ts";
import { commandsIn } from "./shell-lines.ts";

/** Languages, and the kinds that their blocks may have. A block of any other language is an error. */
const known: Readonly<Record<string, readonly string[]>> = {
  ts: [""],
  js: [""],
  sh: [""],
  json: ["", "settings", "hooks", "mcp", "providers", "faux"],
  jsonc: ["settings"],
  jsonl: [""],
  yaml: [""],
  markdown: ["agent", "skill", "instructions"],
  sql: [""],
  text: [""],
};

describe("code blocks in the documentation", () => {
  it("code blocks in the documentation have a language", () => {
    const unknown = blocks.filter(({ language, kind }) => !known[language]?.includes(kind));
    expect(unknown.map(({ at, language, kind }) => `${at} ${language} ${kind}`.trim())).toEqual([]);
  });

  it.each(blocksIn("json", ""))("code blocks in the documentation contain valid JSON at $at", ({ content }) => {
    const lines = content.trim().split("\n");
    const isJson = parseJson(content).ok || lines.every((line) => parseJson(line).ok);
    expect(isJson).toBe(true);
  });

  it.each(blocksIn("jsonl"))("code blocks in the documentation contain valid JSON lines at $at", ({ content }) => {
    for (const line of content.trim().split("\n")) expect(parseJson(line)).toMatchObject({ ok: true });
  });

  it.each([...blocksIn("json", "settings"), ...blocksIn("jsonc", "settings")])(
    "code blocks in the documentation contain valid settings at $at",
    ({ content }) => {
      expect(parseSettings("example", content).unknown).toEqual([]);
    },
  );

  it.each(blocksIn("json", "hooks"))(
    "code blocks in the documentation contain a valid hook file at $at",
    ({ content }) => {
      const { definitions, notices } = parseHookFile(content, { origin: userOrigin, environment: {} });
      expect(notices).toEqual([]);
      expect(definitions).not.toEqual([]);
    },
  );

  it.each(blocksIn("json", "mcp"))(
    "code blocks in the documentation contain valid MCP servers at $at",
    ({ content }) => {
      const { mcpServers = {} } = JSON.parse(content) as { mcpServers?: Record<string, unknown> };
      const place = { scope: "user", source: "example", folder: "/" } as const;
      const read = Object.entries(mcpServers).map(([name, entry]) => readEntry(name, entry, place));
      expect(read.length).toBeGreaterThan(0);
      for (const entry of read) expect(entry).toMatchObject({ kind: "server", notices: [] });
    },
  );

  it.each(blocksIn("json", "providers"))(
    "code blocks in the documentation contain a valid providers.json at $at",
    ({ content }) => {
      expect(parseProvidersFile({ path: "example", text: content }).providers.size).toBeGreaterThan(0);
    },
  );

  it.each(blocksIn("json", "faux"))(
    "code blocks in the documentation contain a valid script of the faux model at $at",
    ({ content }) => {
      expect(parseFauxScript(content).length).toBeGreaterThan(0);
    },
  );

  it.each(blocksIn("yaml"))("code blocks in the documentation contain valid YAML at $at", ({ content }) => {
    expect(parseDocument(content).errors).toEqual([]);
  });

  it.each(blocksIn("markdown", "agent"))(
    "code blocks in the documentation contain a valid agent file at $at",
    async ({ content }) => {
      expect(await parseAgent(content, { id: "example", source: "user" })).toMatchObject({ ok: true, warnings: [] });
    },
  );

  it.each([...blocksIn("markdown", "skill"), ...blocksIn("markdown", "instructions")])(
    "code blocks in the documentation contain valid frontmatter at $at",
    async ({ content }) => {
      const { data, problem } = await parseFrontmatter(content);
      expect(problem).toBeUndefined();
      expect(Object.keys(data)).toContain("description");
    },
  );

  it.each(blocksIn("js"))("code blocks in the documentation contain valid JavaScript at $at", async ({ content }) => {
    await transform(content, { loader: "js", format: "esm", target: "node20" });
  });
});

describe("commands in sh blocks", () => {
  const manifest = parseJson(read("package.json"));
  const scripts =
    manifest.ok && isObject(manifest.value) && isObject(manifest.value.scripts) ? manifest.value.scripts : {};
  const programs =
    /^(troupe|npm|npx|node|git|grep|jq|export|cat|cd|mkdir|openssl|curl|kill|bwrap|sudo|tail|reset|ls|apt|echo|man|eval)$/;

  const names = commands.map(({ name }) => name);

  it.each(blocksIn("sh"))("commands in sh blocks can be run at $at", async (block: Block) => {
    for (const words of await commandsIn(block.content)) {
      const [program = "", ...rest] = words;
      expect(program).toMatch(programs);
      if (program === "troupe") expect(() => parse(rest), words.join(" ")).not.toThrow();
      if (program === "troupe" && /^[a-z]/.test(rest[0] ?? "")) expect(names).toContain(rest[0]);
      if (program === "npm" && rest[0] === "run") expect(Object.keys(scripts)).toContain(rest[1]);
      if (program === "npm" && rest[0] === "start")
        expect(() => parse(afterDashes(rest)), words.join(" ")).not.toThrow();
    }
  });

  it("commands in sh blocks are refused with a flag that does not exist", async () => {
    const [words = []] = await commandsIn('troupe -p "x" --no-such-flag');
    expect(() => parse(words.slice(1))).toThrow("Unknown flag --no-such-flag.");
  });
});

function afterDashes(words: readonly string[]): readonly string[] {
  const index = words.indexOf("--");
  return index === -1 ? [] : words.slice(index + 1);
}
