/** The answers to a request as a numbered menu. */
import type { AttentionItem } from "../view/view.ts";
import { prefixOf } from "./attention.ts";
import { approval } from "./card-answers.ts";
import type { TerminalSession } from "./session.ts";

/** Stands before a request. */
export const menuLabels: Readonly<Record<AttentionItem["kind"], string>> = {
  permission: "permission required",
  memory: "memory proposal",
  question: "question",
  plan: "plan to approve",
  elicitation: "form",
  sign_in: "sign-in",
  limit: "limit reached",
  model_switch: "switch the model",
};

export interface MenuEntry {
  readonly label: string;
  readonly needsWords: boolean;
  answer(words: string): Promise<unknown>;
}

export function menuOf(item: AttentionItem, session: TerminalSession): readonly MenuEntry[] {
  const entry = (label: string, answer: (words: string) => Promise<unknown>, needsWords = false): MenuEntry => ({
    label,
    needsWords,
    answer,
  });
  const decide = (result: Readonly<Record<string, unknown>>) => () => session.decide(item, result);
  switch (item.kind) {
    case "permission":
    case "memory":
      return [
        entry("approve once", decide(approval(item, "once"))),
        ...(item.canAllowForSession
          ? [
              entry("approve for this session", decide(approval(item, "session"))),
              entry(`approve always in this folder${prefixOf(item)}`, decide(approval(item, "always"))),
            ]
          : []),
        entry("deny", decide({ kind: "reject" })),
        entry("deny and say why", (feedback) => session.decide(item, { kind: "reject", feedback }), true),
      ];
    case "question":
      return [
        ...item.choices.map((choice) => entry(choice, () => session.answerQuestion(item, choice, false))),
        ...(item.allowFreeform
          ? [entry("answer in words", (words) => session.answerQuestion(item, words, true), true)]
          : []),
      ];
    case "plan":
      return [
        ...item.choices.map((choice) =>
          entry(`approve: ${choice}`, () => session.answerPlan(item, { approved: true, selectedAction: choice })),
        ),
        entry("reject and say why", (feedback) => session.answerPlan(item, { approved: false, feedback }), true),
      ];
    case "elicitation":
      return [
        entry("decline", () => session.answerForm(item, { action: "decline" })),
        entry(
          "accept, with the values as JSON",
          (words) => session.answerForm(item, { action: "accept", content: JSON.parse(words || "{}") }),
          true,
        ),
      ];
    default:
      return [];
  }
}
