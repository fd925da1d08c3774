import type { Hooks } from "../hooks/fire.ts";
import type { HookDefinition } from "../hooks/hooks.ts";
import type { PrepareProgram } from "../lib/node/program.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { Emit } from "../protocol/event.ts";

/** Makes the hooks of a session when it has any; a session without pays nothing. */
export async function sessionHookFactory(options: {
  definitions: readonly HookDefinition[];
  stamp: Stamp;
  environment: Readonly<Record<string, string | undefined>>;
  projectRoot: string;
  prepare: PrepareProgram;
  warn(message: string): void;
}): Promise<((emit: Emit) => Hooks) | undefined> {
  if (options.definitions.length === 0) return undefined;
  const { createHooks } = await import("../hooks/fire.ts");
  return (emit) => createHooks({ ...options, emit });
}
