import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { Tool, ToolContext } from "../../src/tools/tool.ts";
import type { ToolResult } from "../../src/tools/tool-error.ts";

export interface Workspace {
  /** The allowed folder and working folder. */
  readonly root: string;
  /** A folder next to it that is not allowed. */
  readonly outside: string;
  write(path: string, content?: string | Uint8Array): string;
}

/** Real folders, removed when the test is over. */
export function workspace(): Workspace {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "troupe-tools-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const root = join(base, "work");
  const outside = join(base, "work-evil");
  for (const folder of [root, outside]) mkdirSync(folder);
  writeFileSync(join(outside, "secret.txt"), "SECRET\n");
  return {
    root,
    outside,
    write(path, content = "") {
      const full = join(root, path);
      mkdirSync(dirname(full), { recursive: true });
      writeFileSync(full, content);
      return full;
    },
  };
}

export function contextFor(root: string, changes: Partial<ToolContext> = {}): ToolContext {
  return {
    cwd: root,
    roots: [root],
    toolCallId: "call_1",
    signal: new AbortController().signal,
    progress: () => {},
    ...changes,
  };
}

export function call(tool: Tool, input: unknown, context: ToolContext): Promise<ToolResult> {
  return tool.bind(input).run(context);
}

export async function contentOf(tool: Tool, input: unknown, context: ToolContext): Promise<string> {
  return (await call(tool, input, context)).content;
}

/** The failure as the loop sees it. */
export async function failureOf(
  tool: Tool,
  input: unknown,
  context: ToolContext,
): Promise<{ code: unknown; message: string }> {
  const error: unknown = await Promise.resolve()
    .then(() => call(tool, input, context))
    .then(
      (result) => new Error(`no failure, but: ${result.content}`),
      (reason: unknown) => reason,
    );
  if (!(error instanceof Error)) throw error;
  return { code: "code" in error ? error.code : error.name, message: error.message };
}

export function makeFifo(path: string): void {
  execFileSync("mkfifo", [path]);
}
