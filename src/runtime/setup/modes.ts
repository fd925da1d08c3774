import { join } from "node:path";
import type { SessionMode } from "../../commands/command.ts";
import { readShared } from "../../lib/node/shared-folder.ts";
import type { Policy } from "../../permissions/policy.ts";
import type { CheckResult } from "../../session/modes/autopilot.ts";
import { afterPlan, modeSection, planPolicy } from "../../session/modes/modes.ts";
import type { SessionOptions } from "../../session/session.ts";
import type { Shells } from "../../tools/shell/shells.ts";
import type { SessionChannel } from "./session-channel.ts";

/** The effects of the session's mode: refused calls, a prompt section, and the handling of plans. */
export interface ModeParts extends Pick<SessionOptions, "policy" | "reasonToRefuse" | "plan" | "onMode"> {
  /** Returns the prompt section of the mode. */
  section(): string | undefined;
  current(): SessionMode;
}

export function modeParts(parts: { files: string; policy: Policy; channel: SessionChannel }): Required<ModeParts> {
  const { channel } = parts;
  const planFile = join(parts.files, PLAN);
  const { policy, reasonToRefuse } = planPolicy(parts.policy, planFile);
  let current: SessionMode = "interactive";
  return {
    policy,
    reasonToRefuse: (question) => (current === "plan" ? reasonToRefuse(question) : undefined),
    plan: {
      content: () => readPlan(parts.files),
      async approved(action) {
        const { mode, startsFleet } = afterPlan(action);
        const { session } = channel;
        await session?.mainAgent.modes.set(mode);
        if (!session || !startsFleet) return;
        const { fleetMessage } = await import("../submit.ts");
        await session.send(await fleetMessage(session, ""));
      },
    },
    onMode(mode) {
      if (mode === current) return;
      current = mode;
      channel.toolsChanged();
    },
    section: () => modeSection(current, { planFile }),
    current: () => current,
  };
}

const PLAN = "plan.md";
const MAX_PLAN_BYTES = 1024 * 1024;

/** Returns the plan, "" if there is none. Only a plain file is read, because commands can replace it. */
export async function readPlan(files: string): Promise<string> {
  try {
    return (await readShared(files, PLAN, MAX_PLAN_BYTES))?.toString("utf8") ?? "";
  } catch (error) {
    return `(${PLAN} was not read: ${error instanceof Error ? error.message : String(error)})`;
  }
}

const CHECK_MS = 10 * 60_000;
const MAX_OUTPUT_CHARACTERS = 20_000;

/** Runs a command of the user in a separate shell, contained like the agent's commands. */
export function checkRunner(request: {
  cwd: string;
  roots: readonly string[];
  newShells(): Shells;
  /** Aborts with the session, so that a check does not outlive it. */
  end(): AbortSignal | undefined;
}) {
  return async (command: string): Promise<CheckResult> => {
    const shells = request.newShells();
    try {
      const { cwd, roots } = request;
      const reply = await shells.run({
        command,
        cwd,
        roots,
        description: "check",
        toolCallId: "check",
        mode: "sync",
        waitMs: CHECK_MS,
        signal: AbortSignal.any([AbortSignal.timeout(CHECK_MS + 5_000), ...[request.end() ?? []].flat()]),
      });
      return {
        exitCode: reply.state === "exited" ? reply.exitCode : null,
        output: reply.output.slice(-MAX_OUTPUT_CHARACTERS),
      };
    } catch (error) {
      return { exitCode: null, output: error instanceof Error ? error.message : String(error) };
    } finally {
      await shells.closeAll();
    }
  };
}
