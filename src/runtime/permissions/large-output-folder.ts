import { join } from "node:path";
import { isInside } from "../../lib/node/paths.ts";
import { openForWriting } from "../../lib/node/paths-write.ts";
import { realPathOf } from "../../permissions/resolve-path.ts";
import type { RunSettings } from "../../session/run-settings.ts";
import type { SessionSetup } from "../setup/session-setup.ts";

const PRIVATE_FILE = 0o600;

/**
 * Writes large outputs to the client's folder, if the agent may read and write it. Otherwise the agent could not read
 * them. Outputs that cannot be written there are stored with the session.
 */
export function outputWriter(setup: SessionSetup, roots: readonly string[]): RunSettings["storeOutput"] {
  const { request, context, disk, log, channel, stateRoot } = setup;
  const { outputFolder: folder } = request.tools ?? {};
  if (folder === undefined) return undefined;
  const real = realPathOf(folder, context.cwd);
  const isAllowed = (roots.length === 0 || isInside(real, roots)) && !isInside(real, [stateRoot]);
  if (!isAllowed) {
    const message = `largeOutput.outputDir is not used: ${folder} is outside the folders of the session, so large outputs are kept with the session. Choose a folder below the working directory, or name it in additionalDirectories.`;
    channel.warn("options", message);
    return undefined;
  }
  return async (name, content) => {
    const path = join(real, `${crypto.randomUUID().slice(0, 8)}-${name}`);
    try {
      const target = await openForWriting(path, { cwd: context.cwd, roots, disk });
      try {
        await target.write(Buffer.from(content), { mode: PRIVATE_FILE });
      } finally {
        await target.close();
      }
      return path;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      channel.warn("options", `A large output could not be written to largeOutput.outputDir: ${why}`);
      return log.writeFile(name, content);
    }
  };
}
