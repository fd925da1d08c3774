import { statSync } from "node:fs";
import { openForReading } from "../../src/lib/node/paths.ts";
import {
  type FileChange,
  type FileLedger,
  type Files,
  fileLedger,
  noteSeen,
  rememberedFiles,
} from "../../src/tools/files/files.ts";
import { view } from "../../src/tools/files/view.ts";
import type { Tool, ToolContext } from "../../src/tools/tool.ts";
import { call, contextFor, type Workspace, workspace } from "./workspace.ts";

export interface FileWorkspace extends Workspace {
  readonly context: ToolContext & { readonly files: Files };
  readonly kept: FileChange[];
  /** The agent looks at a file. */
  see(path: string): Promise<void>;
  /** Another agent in the same folder. */
  another(agent: string): ToolContext & { readonly files: Files };
  mode(path: string): string;
}

export function fileWorkspace(
  options: { ledger?: FileLedger; reasonToRefuse?: (path: string) => string | undefined } = {},
): FileWorkspace {
  const space = workspace();
  const kept: FileChange[] = [];
  const ledger: FileLedger = options.ledger ?? fileLedger();
  const contextOf = (agent: string) => {
    const keep = async (changes: readonly FileChange[]): Promise<void> => void kept.push(...changes);
    const files = rememberedFiles({
      agent,
      ledger,
      keep,
      ...(options.reasonToRefuse && { reasonToRefuse: options.reasonToRefuse }),
    });
    return { ...contextFor(space.root), files };
  };
  const context = contextOf("main");
  return {
    ...space,
    context,
    kept,
    another: contextOf,
    async see(path) {
      const opened = await openForReading(path, context);
      await noteSeen(opened, context);
      await opened.handle.close();
      await call(view, { path }, context);
    },
    mode: (path) => (statSync(path).mode & 0o7777).toString(8),
  };
}

/** The diff a person would be asked about. */
export async function askedDiff(tool: Tool, input: unknown, context: ToolContext): Promise<string> {
  const accesses = await tool.bind(input).access(context);
  return accesses.map((access) => (access.kind === "write" ? access.diff : "")).join("");
}
