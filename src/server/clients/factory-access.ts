/**
 * A run of a factory starts agents, which costs money. A client that a person has started may do that, and so may an extension
 * of the person's own. An extension that a project brings asks first.
 */
import { DEFAULT_TOTAL_AGENTS } from "../../factories/attempt.ts";
import type { RunLimits } from "../../factories/run-fold.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { permitAside } from "../../session/requests/permit-aside.ts";
import type { SessionCall } from "../methods/method.ts";

/**
 * Asks once for each factory, and again when a run may have more agents than were agreed to. A no is final until the
 * extension is started again. Throws where a person says no.
 */
export async function requireFactoryAccess(
  { connection: { extension }, session, signal }: Pick<SessionCall, "connection" | "session" | "signal">,
  run: { readonly factoryName: string; readonly limits: RunLimits },
): Promise<void> {
  // By where it comes from: a program that answers for a folder has agreed to run its code, not to pay for it.
  if (!extension?.id.startsWith("project:")) return;
  const { factoryName, limits } = run;
  const { maxTotalSubagents: wanted = DEFAULT_TOTAL_AGENTS } = limits;
  const answers = extension.factories;
  const earlier = await answers.get(factoryName);
  if (earlier !== undefined && earlier >= wanted) return;
  if (earlier !== 0) {
    const capabilities = [`run its factory ${JSON.stringify(factoryName)}, which may start ${wanted} agents each time`];
    const access = { kind: "extension-permission-access", extensionName: extension.name, capabilities } as const;
    const until = AbortSignal.any([session.end.signal, signal]);
    const answer = permitAside(session, access, until).then((isAllowed) => (isAllowed ? wanted : 0));
    answers.set(factoryName, answer);
    answer.catch(() => answers.delete(factoryName));
    if ((await answer) > 0) return;
  }
  throw new TroupeError("usage", `The extension ${extension.name} may not run its factory ${factoryName}.`);
}
