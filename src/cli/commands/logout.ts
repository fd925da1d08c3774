import { sanitise } from "../../lib/text.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { type Arguments, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";

/** `troupe logout`: removes the stored keys of all providers, or of one. */
export async function logoutCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const [, provider, stray] = given.words;
  if (stray !== undefined) throw usage(`troupe logout takes one provider, but got "${stray}" too.`);
  const { models } = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const { removed, remaining } = await (await models.keys()).clear(provider);
  const whose = provider === undefined ? "" : ` for ${provider}`;
  const done = removed.map((id) => `The key of ${id} is removed.\n`).join("");
  await write(sanitise(done || `No key is stored${whose}.\n`));
  for (const { id } of remaining)
    printMessage(
      sanitise(`${id} still has a key, from the environment or a command in providers.json. Remove it there.`),
    );
  return exitCodes.done;
}
