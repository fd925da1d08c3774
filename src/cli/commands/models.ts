import { sanitise } from "../../lib/text.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { jsonList, write } from "../output/output.ts";

/** `troupe models`: lists the usable models, and what the others still need. */
export async function modelsCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  if (given.words.length > 1)
    throw usage(`troupe models takes no arguments, but got "${given.words.slice(1).join(" ")}".`);
  const { models } = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const rows = await models.list();
  if (wantsJson(given)) {
    await write(jsonList(rows));
    return exitCodes.done;
  }
  const chosen = await models.resolve().then(
    ({ label }) => label,
    (error: unknown) => (error instanceof Error ? `none: ${error.message}` : String(error)),
  );
  const width = Math.max(...rows.map(({ ref }) => ref.length));
  const line = (row: (typeof rows)[number]): string => {
    const window = row.contextWindow === null ? "" : `${Math.round(row.contextWindow / 1000)}k tokens`;
    const price = row.price === null ? "" : priceText(row.price);
    return `  ${row.ref.padEnd(width)}  ${(row.usable ? window : row.reason).padEnd(12)}  ${row.usable ? price : ""}`.trimEnd();
  };
  const usable = rows.filter((row) => row.usable);
  const rest = rows.filter((row) => !row.usable);
  const text = [
    `In use without --model: ${chosen}`,
    "",
    "Ready:",
    ...usable.map(line),
    ...(rest.length > 0 ? ["", "Not ready, and why:", ...rest.map(line)] : []),
    "",
    "Choose one with --model, TROUPE_MODEL, or defaultModel in providers.json.",
  ];
  await write(sanitise(`${text.join("\n")}\n`));
  return exitCodes.done;
}

function priceText({ input, output }: { input: number; output: number }): string {
  return input === 0 && output === 0 ? "free" : `$${input} in, $${output} out per million`;
}
