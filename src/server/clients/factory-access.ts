/**
 * Access to factory runs. A run starts agents, which costs money. Clients that a user started and the user's own
 * extensions may start one. An extension of a project must ask first.
 */
import { DEFAULT_TOTAL_AGENTS } from "../../factories/attempt.ts";
import type { RunLimits } from "../../factories/run-fold.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { permitOutsideCall } from "../../session/requests/permit-outside-call.ts";
import type { SessionCall } from "../methods/method.ts";

/**
 * Asks once for each factory, and again if a run may have more agents than approved. A refusal lasts until the
 * extension is restarted. Throws if the user refuses.
 */
export async function requireFactoryAccess(
  { connection: { extension }, session, signal }: Pick<SessionCall, "connection" | "session" | "signal">,
  run: { readonly factoryName: string; readonly limits: RunLimits },
): Promise<void> {
  // Checks the origin: trust in a folder covers running its code, not paying for it.
  if (!extension?.id.startsWith("project:")) return;
  const { factoryName, limits } = run;
  const { maxTotalSubagents: wanted = DEFAULT_TOTAL_AGENTS } = limits;
  const answers = extension.factories;
  const earlier = await answers.get(factoryName);
  if (earlier !== undefined && earlier >= wanted) return;
  if (earlier !== 0) {
    const capabilities = [`run its factory ${JSON.stringify(factoryName)}, which may start ${wanted} agents each time`];
    const access = { kind: "extension-permission-access", extensionName: extension.name, capabilities } as const;
    const until = AbortSignal.any([session.queue.closed, signal]);
    const answer = permitOutsideCall(session, access, until).then((isAllowed) => (isAllowed ? wanted : 0));
    answers.set(factoryName, answer);
    answer.catch(() => answers.delete(factoryName));
    if ((await answer) > 0) return;
  }
  throw new TroupeError("usage", `The extension ${extension.name} may not run its factory ${factoryName}.`);
}
