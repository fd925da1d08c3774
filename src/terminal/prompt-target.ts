/** The destination of the text in the prompt. */
import type { FormField } from "../lib/form-fields.ts";
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
