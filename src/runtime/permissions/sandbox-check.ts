/** Tells whether commands can run in the sandbox here, by running one. */
import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { nodeDisk } from "../../lib/node/disk.ts";
import { sandboxMode, sandboxSource } from "./shells.ts";

interface SandboxCheck {
  /** `refused`: the sandbox is required and does not work, so no command runs. */
  readonly state: "works" | "off" | "absent" | "refused";
  /** The sandbox's program, or the reason why it does not work. */
  readonly detail: string;
}

const TIMEOUT_MS = 10_000;

export async function checkSandbox(request: {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stateRoot: string;
}): Promise<SandboxCheck> {
  const mode = sandboxMode(request.environment) ?? "auto";
  if (mode === "off") return { state: "off", detail: "" };
  const lacking = mode === "required" ? "refused" : "absent";
  const source = sandboxSource({ environment: request.environment, stateRoot: request.stateRoot, disk: nodeDisk });
  try {
    const sandbox = await source.get(false);
    const probed = await sandbox.probe();
    if (!probed.available) return { state: lacking, detail: probed.reason };
    const cwd = realpathSync(request.cwd);
    const prepared = await sandbox.prepare({
      workspace: [cwd],
      cwd,
      ownTerminal: false,
      detached: false,
      readOnlyWorkspace: true,
    });
    if (prepared.kind === "plain") return { state: lacking, detail: prepared.warning ?? "it was left" };
    const failure = await failureOf([...prepared.launcher, "true"], prepared.environment).finally(prepared.release);
    return failure === undefined ? { state: "works", detail: probed.program } : { state: lacking, detail: failure };
  } catch (error) {
    return { state: lacking, detail: error instanceof Error ? error.message : String(error) };
  } finally {
    await source.close();
  }
}

function failureOf(
  [program = "", ...args]: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const env = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", ...environment };
  return new Promise((resolve) => {
    execFile(program, args, { timeout: TIMEOUT_MS, killSignal: "SIGKILL", env }, (error, _, said) =>
      resolve(error ? said.trim().slice(0, 300) || error.message : undefined),
    );
  });
}
