/** The user's interface for tools, backed by the broker. */
import type { Json } from "../../lib/json.ts";
import type { PlanAction, User } from "../../tools/user/user.ts";
import type { Broker } from "./broker.ts";

/** The plan of plan mode: its text and the callback for an approval. */
export interface PlanPort {
  content(): Promise<string>;
  approved?(action: PlanAction): Promise<void>;
}

/** Returns the user as tools see it. */
export function brokerUser(broker: Broker, plan: PlanPort): User {
  return {
    async ask({ question, choices, allowFreeform, toolCallId }, signal) {
      const data = { question, allowFreeform, toolCallId, ...(choices && { choices: [...choices] }) };
      return availableOr(await broker.request("user_input", data, { signal }), signal);
    },
    async askForm({ message, requestedSchema, toolCallId }, signal) {
      const { properties, required } = requestedSchema;
      // The call's arguments are JSON and already validated.
      const fields = properties as Record<string, Json>;
      const schema = { type: "object" as const, properties: fields, ...(required && { required: [...required] }) };
      const data = { message, mode: "form" as const, requestedSchema: schema, toolCallId };
      return availableOr(await broker.request("elicitation", data, { signal }), signal);
    },
    async reviewPlan({ summary, actions, recommendedAction, toolCallId }, signal) {
      const data = { summary, actions: [...actions], recommendedAction, planContent: await plan.content() };
      const decision = availableOr(await broker.request("exit_plan_mode", data, { signal, toolCallId }), signal);
      if (decision !== "unavailable" && decision.approved)
        await plan.approved?.(decision.selectedAction ?? "interactive");
      return decision;
    },
  };
}

function availableOr<A>(outcome: A | "unavailable" | "cancelled", signal: AbortSignal): A | "unavailable" {
  signal.throwIfAborted();
  return outcome === "cancelled" ? "unavailable" : outcome;
}
