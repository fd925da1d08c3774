import { chmodSync, existsSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { grep, grepTool } from "../../src/tools/files/grep.ts";
import { HANG_MS } from "../support/work.ts";
import { contentOf, contextFor, failureOf, makeFifo, workspace } from "./workspace.ts";

function project() {
  const place = workspace();
  place.write("src/index.ts", "const a = 1;\nhello world\nconst b = 2;\n");
  place.write("src/other.ts", "HELLO\nhello again\n");
  place.write("notes.md", "hello notes\n");
  return place;
}

describe("grep results", () => {
  test("grep returns path, line and text in content mode with -n", async () => {
    const { root } = project();
    const input = { pattern: "hello w", path: root, output_mode: "content", "-n": true };
    expect(await contentOf(grep, input, contextFor(root))).toBe(`${root}/src/index.ts:2:hello world`);
    expect(await contentOf(grep, { ...input, path: "src/index.ts" }, contextFor(root))).toBe(
      `${root}/src/index.ts:2:hello world`,
    );
    expect(await contentOf(grep, { ...input, "-n": false }, contextFor(root))).toBe(`${root}/src/index.ts:hello world`);
  });

  test("grep marks the lines around a match when it is asked for context", async () => {
    const { root } = project();
    const input = { pattern: "world", output_mode: "content", "-n": true };
    const path = `${root}/src/index.ts`;
    const around = `${path}-1-const a = 1;\n${path}:2:hello world\n${path}-3-const b = 2;`;
    expect(await contentOf(grep, { ...input, "-C": 1 }, contextFor(root))).toBe(around);
    expect(await contentOf(grep, { ...input, "-A": 1, "-B": 1 }, contextFor(root))).toBe(around);
    expect(await contentOf(grep, { ...input, "-B": 1, path }, contextFor(root))).toBe(
      `${path}-1-const a = 1;\n${path}:2:hello world`,
    );
  });

  test("grep lists the matching files by default, in the order of their paths", async () => {
    const { root } = project();
    expect(await contentOf(grep, { pattern: "hello" }, contextFor(root))).toBe(
      `${root}/notes.md\n${root}/src/index.ts\n${root}/src/other.ts`,
    );
  });

  test("grep counts matches per file in count mode", async () => {
    const { root } = project();
    const input = { pattern: "hello", output_mode: "count", "-i": true };
    expect(await contentOf(grep, { ...input, path: "src" }, contextFor(root))).toBe(
      `${root}/src/index.ts:1\n${root}/src/other.ts:2`,
    );
    expect(await contentOf(grep, { ...input, path: "src/other.ts" }, contextFor(root))).toBe(`${root}/src/other.ts:2`);
  });

  test("grep results can be narrowed by glob, type and several paths", async () => {
    const { root } = project();
    const context = contextFor(root);
    expect(await contentOf(grep, { pattern: "hello", glob: "*.md" }, context)).toBe(`${root}/notes.md`);
    expect(await contentOf(grep, { pattern: "hello", glob: "!*.ts" }, context)).toBe(`${root}/notes.md`);
    expect(await contentOf(grep, { pattern: "again", type: "ts" }, context)).toBe(`${root}/src/other.ts`);
    expect(await contentOf(grep, { pattern: "hello", paths: ["notes.md", "src/other.ts"] }, context)).toBe(
      `${root}/notes.md\n${root}/src/other.ts`,
    );
    expect(await contentOf(grep, { pattern: "hello", paths: "notes.md" }, context)).toBe(`${root}/notes.md`);
  });

  test("grep matches across lines only with multiline", async () => {
    const { root } = project();
    const input = { pattern: "a = 1;.hello", output_mode: "content", "-n": true };
    expect(await contentOf(grep, input, contextFor(root))).toBe("No matches found.");
    expect(await contentOf(grep, { ...input, multiline: true }, contextFor(root))).toBe(
      `${root}/src/index.ts:1:const a = 1;\n${root}/src/index.ts:2:hello world`,
    );
  });

  test("grep stops at head_limit and says so only when there was more", async () => {
    const { root } = project();
    const input = { pattern: "hello", head_limit: 2 };
    expect(await contentOf(grep, input, contextFor(root))).toBe(
      `${root}/notes.md\n${root}/src/index.ts\n[Stopped at head_limit after 2 lines; there are more]`,
    );
    expect((await contentOf(grep, { ...input, head_limit: 3 }, contextFor(root))).split("\n")).toHaveLength(3);
    expect((await contentOf(grep, { ...input, head_limit: 0 }, contextFor(root))).split("\n")).toHaveLength(3);
  });

  test("grep omits .git and ignored, binary and linked files, but not hidden ones", async () => {
    const { root, outside, write } = workspace();
    write(".git/config", "needle");
    write(".gitignore", "ignored/\n");
    write("ignored/a.txt", "needle");
    write("binary", "needle\0\n");
    write(".github/ci.yml", "needle");
    writeFileSync(join(outside, "far.txt"), "needle");
    symlinkSync(outside, join(root, "link"));
    expect(await contentOf(grep, { pattern: "needle" }, contextFor(root))).toBe(`${root}/.github/ci.yml`);
    expect(await contentOf(grep, { pattern: "needle", glob: "**" }, contextFor(root))).not.toContain(".git/config");
    expect(await contentOf(grep, { pattern: "needle", path: "ignored" }, contextFor(root))).toBe(
      `${root}/ignored/a.txt`,
    );
  });

  test("grep cuts long lines and long results", async () => {
    const { root, write } = workspace();
    write("long.txt", `needle ${"x".repeat(5000)}\n`);
    const line = await contentOf(grep, { pattern: "needle", output_mode: "content" }, contextFor(root));
    expect(line.length).toBeLessThan(root.length + 700);
    expect(line).toContain("omitted end of long line");
    write("many.txt", "needle in a line of some length\n".repeat(200_000));
    const all = await contentOf(grep, { pattern: "needle in", output_mode: "content" }, contextFor(root));
    expect(all.length).toBeLessThan(257 * 1024);
    expect(all).toMatch(/\n\[Too much output: cut after \d+ lines\. Narrow .+\]$/);
  });
});

describe("grep failures", () => {
  test("grep reports ripgrep's reason for a pattern, type or glob it does not take", async () => {
    const { root } = project();
    const bad = await failureOf(grep, { pattern: "(" }, contextFor(root));
    expect(bad.code).toBe("failure");
    expect(bad.message).toMatch(/^The search failed: regex parse error:[\s\S]+unclosed group$/);
    expect((await failureOf(grep, { pattern: "a", type: "nope" }, contextFor(root))).message).toContain("nope");
    expect((await failureOf(grep, { pattern: "a", glob: "[" }, contextFor(root))).message).toContain("glob");
    expect((await failureOf(grep, { pattern: "a\0b" }, contextFor(root))).message).toContain("NUL");
  });

  test("grep names a missing path, a denied one and a pipe", async () => {
    const { root, outside } = project();
    makeFifo(join(root, "pipe"));
    symlinkSync(outside, join(root, "link"));
    const failure = (path: string) => failureOf(grep, { pattern: "SECRET", path }, contextFor(root));
    expect((await failure("no")).message).toBe(`Path ${root}/no does not exist. Please provide a valid path.`);
    for (const path of ["..", outside, "link", "link/secret.txt"]) expect((await failure(path)).code).toBe("denied");
    expect((await failure("pipe")).message).toContain("is a named pipe");
    expect(await contentOf(grep, { pattern: "SECRET" }, contextFor(root))).toBe("No matches found.");
  });

  test("grep treats a pattern or glob that looks like a flag as text", async () => {
    const { root, write } = project();
    const marker = join(root, "marker");
    const script = write("run.sh", `#!/bin/sh\ntouch ${marker}\ncat\n`);
    chmodSync(script, 0o755);
    const flag = `--pre=${script}`;
    for (const input of [{ pattern: flag }, { pattern: "hello", glob: flag }, { pattern: "-e" }]) {
      expect(await contentOf(grep, input, contextFor(root))).toMatch(/^No matches found\.$|run\.sh$/);
    }
    await failureOf(grep, { pattern: "hello", type: flag }, contextFor(root));
    await failureOf(grep, { pattern: "hello", path: flag }, contextFor(root));
    expect(existsSync(marker)).toBe(false);
  });
});

describe("the process behind grep", () => {
  /** Stands in for ripgrep and writes down how it was started. */
  function fakeRipgrep(place: { write(path: string, content: string): string }, body: string): string {
    const path = place.write("fake/rg", `#!/bin/sh\n${body}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  test("the ripgrep process gets no configuration file and no variables of our environment", async () => {
    const place = project();
    const record = join(place.root, "record");
    const executable = fakeRipgrep(place, `env > ${record}; echo "$@" >> ${record}; cat >> ${record}`);
    process.env.TROUPE_CANARY = "canary";
    process.env.RIPGREP_CONFIG_PATH = "/nowhere";
    try {
      await contentOf(grepTool({ executable }), { pattern: "x" }, contextFor(place.root));
    } finally {
      delete process.env.TROUPE_CANARY;
      delete process.env.RIPGREP_CONFIG_PATH;
    }
    const text = readFileSync(record, "utf8");
    const names = text.split("\n").flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? []);
    expect(names.filter((name) => !["PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"].includes(name))).toEqual([]);
    expect(text).not.toContain("canary");
    expect(text).toContain("--no-config");
  });

  test("an abort of grep ends the ripgrep process and its children", async () => {
    const place = project();
    const record = join(place.root, "record");
    const executable = fakeRipgrep(place, `sleep 60 & echo $! $$ > ${record}; wait`);
    const abort = new AbortController();
    const running = failureOf(
      grepTool({ executable }),
      { pattern: "x" },
      contextFor(place.root, { signal: abort.signal }),
    );
    await until(() => existsSync(record) && readFileSync(record, "utf8").includes("\n"));
    abort.abort(new Error("stopped by the user"));
    expect((await running).message).toBe("stopped by the user");
    for (const pid of readFileSync(record, "utf8").trim().split(" ")) await until(() => !isRunning(Number(pid)));
  });

  test("grep stops ripgrep at the time limit and returns the partial results", async () => {
    const place = project();
    const executable = fakeRipgrep(place, "echo ./src/index.ts; sleep 60");
    expect(await contentOf(grepTool({ executable, timeoutMs: 3_000 }), { pattern: "x" }, contextFor(place.root))).toBe(
      `${place.root}/src/index.ts\n` +
        "[Stopped by the time limit: partial results. Narrow the pattern, the path or the glob.]",
    );
    const silent = fakeRipgrep(place, "sleep 60");
    const options = { executable: silent, timeoutMs: 100 };
    expect((await failureOf(grepTool(options), { pattern: "x" }, contextFor(place.root))).code).toBe("timeout");
  });

  test("grep reports a ripgrep that cannot be started", async () => {
    const { root } = project();
    const tool = grepTool({ executable: join(root, "no-such-program") });
    expect((await failureOf(tool, { pattern: "x" }, contextFor(root))).message).toMatch(
      /^ripgrep could not be started: /,
    );
  });

  test("an abort stops grep in the middle of a search through a large file", async () => {
    const { root, write } = workspace();
    const path = write("big.txt", "text\n");
    truncateSync(path, 200 * 1024 ** 3);
    const signal = AbortSignal.timeout(100);
    const started = performance.now();
    expect((await failureOf(grep, { pattern: "needle", path }, contextFor(root, { signal }))).message).toContain(
      "timeout",
    );
    expect(performance.now() - started).toBeLessThan(HANG_MS);
  });
});

test("grep asks to read each place that it searches", async () => {
  const accessOf = (input: object) => grep.bind({ pattern: "x", ...input }).access(contextFor("/"));
  expect(await accessOf({})).toEqual([{ kind: "read", path: "." }]);
  expect(await accessOf({ path: "src" })).toEqual([{ kind: "read", path: "src" }]);
  expect(await accessOf({ paths: ["src", "../up"] })).toEqual([
    { kind: "read", path: "src" },
    { kind: "read", path: "../up" },
  ]);
});

async function until(condition: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 250; attempt++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("it did not happen within five seconds");
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A process that has ended but was not waited for yet is no longer running.
  return !existsSync(`/proc/${pid}/stat`) || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}
