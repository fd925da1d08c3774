/** The destination of the text in the prompt. */
import { type FormField, fieldMenu } from "../lib/form-fields.ts";
import type { AttentionItem } from "../view/view.ts";

interface Elsewhere {
  readonly label: string;
  /** The draft of the prompt, which comes back afterwards. */
  readonly draft: string;
}

export type Target =
  | { readonly kind: "main"; readonly label: string }
  /** Words for the agent that go along with a denial. */
  | (Elsewhere & { readonly kind: "feedback"; readonly item: AttentionItem })
  | (Elsewhere & { readonly kind: "answer"; readonly item: AttentionItem })
  /** One field of a form after the other. */
  | (Elsewhere & {
      readonly kind: "field";
      readonly item: AttentionItem;
      readonly field: FormField;
      readonly rest: readonly FormField[];
      readonly content: Readonly<Record<string, unknown>>;
    })
  | (Elsewhere & { readonly kind: "agent"; readonly agentId: string });

export const mainTarget: Target = { kind: "main", label: "›" };

export const messageTarget = (agentId: string): Target => ({
  kind: "agent",
  label: `to ${agentId} ›`,
  draft: "",
  agentId,
});

/** The request for which words are typed, with the choices of the field that is asked for. */
export function requestOf(target: Target): AttentionItem | undefined {
  if (target.kind === "field") return { ...target.item, choices: fieldMenu(target.field).map(({ label }) => label) };
  return "item" in target ? target.item : undefined;
}
