import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox, type SandboxOptions } from "../../src/tools/shell/sandbox/sandbox.ts";
import { createShells } from "../../src/tools/shell/session-shells.ts";
import type { ShellReply, ShellRequest, Shells, ShellsOptions } from "../../src/tools/shell/shells.ts";

export interface ShellStage extends AsyncDisposable {
  readonly shells: Shells;
  readonly workspace: TempFolder;
  readonly state: TempFolder;
  run(command: string, more?: Partial<ShellRequest>): Promise<ShellReply>;
  wait(shellId: string, seconds?: number): Promise<ShellReply>;
}

/** Real shells in a workspace of their own; without a sandbox unless told. */
export async function shellStage(
  options: Partial<ShellsOptions> & { sandboxed?: Partial<SandboxOptions> } = {},
): Promise<ShellStage> {
  const workspace = await tempFolder();
  const state = await tempFolder();
  const { sandboxed = { mode: "off" }, ...rest } = options;
  const sandbox = createSandbox({ mode: "required", stateRoot: state.path, ...sandboxed });
  const shells = createShells({ folder: state.at("files"), sandbox, ...rest });
  return {
    shells,
    workspace,
    state,
    run: (command, more = {}) =>
      shells.run({
        command,
        cwd: workspace.path,
        roots: [workspace.path],
        mode: "sync",
        waitMs: 20_000,
        signal: new AbortController().signal,
        ...more,
      }),
    wait: (shellId, seconds = 20) =>
      shells.read({ shellId, waitMs: seconds * 1000, signal: new AbortController().signal }),
    async [Symbol.asyncDispose]() {
      await shells.closeAll();
      await sandbox.close();
      await workspace.remove();
      await state.remove();
    },
  };
}
