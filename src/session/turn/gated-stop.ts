import type { StopGate } from "../../commands/gate.ts";
import type { Run } from "../../loop/run.ts";
import type { Emit, SessionEvent } from "../../protocol/event.ts";

/**
 * Returns a check for when the agent would stop. What the gate finds missing becomes the next message; hooks run once
 * the gate is satisfied.
 */
export function gatedStop(parts: {
  readonly gate: StopGate;
  /** The command that set the gate: `research`, `fleet`. */
  readonly name: string;
  /** Returns the calls of the main agent since the message that is being answered. */
  events(): readonly SessionEvent[];
  readonly emit: Emit;
  readonly otherwise: Run["beforeStopping"];
}): Run["beforeStopping"] {
  const { gate, name, events, emit, otherwise } = parts;
  return async () => {
    const content = await gate(events());
    if (content === undefined) return otherwise();
    await emit("user.message", { content, source: `gate-${name}` });
    return "continue";
  };
}
