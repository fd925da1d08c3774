import type { StopGate } from "../../commands/gate.ts";
import type { Run } from "../../loop/run.ts";
import type { Emit, SessionEvent } from "../../protocol/event.ts";

/** What a gate finds missing when the agent would stop becomes the next message; hooks are asked once it is content. */
export function gatedStop(what: {
  readonly gate: StopGate;
  /** Of the command that asked for it: `research`, `fleet`. */
  readonly name: string;
  /** Those since the message that is being answered. */
  events(): readonly SessionEvent[];
  readonly emit: Emit;
  readonly otherwise: Run["beforeStopping"];
}): Run["beforeStopping"] {
  const { gate, name, events, emit, otherwise } = what;
  return async () => {
    const content = await gate(events());
    if (content === undefined) return otherwise();
    await emit("user.message", { content, source: `gate-${name}` });
    return "continue";
  };
}
