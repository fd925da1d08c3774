import { readFile } from "node:fs/promises";
import { parseHookFile } from "../../src/hooks/config.ts";
import { createHooks, type Hooks, type HooksOptions } from "../../src/hooks/fire.ts";
import type { HookDefinition, HookOrigin } from "../../src/hooks/hooks.ts";
import type { PrepareProgram, ProgramRequest } from "../../src/lib/node/program.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { Emit, EventType } from "../../src/protocol/event.ts";

export const userOrigin: HookOrigin = { scope: "user", owner: "user", file: "hooks.json" };
export const projectOrigin: HookOrigin = { scope: "project", owner: "project", file: "project.json" };

/** What a file with these hooks becomes; fails when anything in it is not used. */
export function hooksOf(hooks: object, options: { origin?: HookOrigin; environment?: Record<string, string> } = {}) {
  const { origin = userOrigin, environment = {} } = options;
  const parsed = parseHookFile(JSON.stringify({ version: 1, hooks }), { origin, environment });
  if (parsed.notices.length > 0) throw new Error(parsed.notices.map(({ message }) => message).join("; "));
  return parsed.definitions;
}

/** Starts programs as they are, and remembers what was asked and given back. */
function plainPrepare(): { prepare: PrepareProgram; requests: ProgramRequest[]; released: () => number } {
  const requests: ProgramRequest[] = [];
  let released = 0;
  const prepare: PrepareProgram = async (request) => {
    requests.push(request);
    const { program, arguments: words, environment } = request;
    return { program, arguments: words, environment, release: async () => void released++ };
  };
  return { prepare, requests, released: () => released };
}

export interface HookStage {
  readonly hooks: Hooks;
  readonly events: { type: EventType; data: Record<string, unknown> }[];
  readonly warnings: string[];
  readonly requests: ProgramRequest[];
  readonly released: () => number;
}

export function hookStage(definitions: readonly HookDefinition[], options: Partial<HooksOptions> = {}): HookStage {
  const events: HookStage["events"] = [];
  const warnings: string[] = [];
  const { prepare, requests, released } = plainPrepare();
  const emit: Emit = async (type, data) => void events.push({ type, data: structuredClone(data) });
  const hooks = createHooks({
    definitions,
    emit,
    stamp: { ...systemStamp, now: () => Date.UTC(2026, 0, 1) },
    prepare,
    environment: process.env,
    projectRoot: process.cwd(),
    warn: (message) => warnings.push(message),
    ...options,
  });
  return { hooks, events, warnings, requests, released };
}

export const place = { sessionId: "s-1", cwd: "/project" };
export const bashCall = { ...place, toolName: "bash", toolArgs: { command: "ls" } };

/** True as long as a process lives and is not merely waiting to be collected. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  return stat !== "" && !/\) [ZX] /.test(stat);
}
