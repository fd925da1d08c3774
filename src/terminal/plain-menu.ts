/** The answers to a request as a numbered menu, and the lines that some answers need. */

import type { AttentionItem } from "../view/view.ts";
import { choiceLabel } from "../view/waits.ts";
import { addressOf, prefixOf } from "./attention.ts";
import { approval } from "./card-answers.ts";
import { formQuestion, type PlainAnswer } from "./plain-form.ts";
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
  answer(): PlainAnswer;
}

export function menuOf(item: AttentionItem, session: TerminalSession): readonly MenuEntry[] {
  const entry = (label: string, answer: () => PlainAnswer): MenuEntry => ({ label, answer });
  const words = (label: string, answer: (words: string) => PlainAnswer): MenuEntry =>
    entry(label, async () => ({
      lines: [`${label}: type it in one line; an empty line goes back`],
      answer: async (text) => (text === "" ? "back" : answer(text)),
    }));
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
        words("deny and say why", (feedback) => session.decide(item, { kind: "reject", feedback })),
      ];
    case "question":
      return [
        ...item.choices.map((choice) => entry(choice, () => session.answerQuestion(item, choice, false))),
        ...(item.allowFreeform
          ? [words("answer in words", (answer) => session.answerQuestion(item, answer, true))]
          : []),
      ];
    case "plan":
      return [
        ...item.choices.map((choice) =>
          entry(choiceLabel(item, choice), () => session.answerPlan(item, { approved: true, selectedAction: choice })),
        ),
        entry("reject", () => session.answerPlan(item, { approved: false })),
        words("reject and say why", (feedback) => session.answerPlan(item, { approved: false, feedback })),
      ];
    case "elicitation":
      return [
        addressOf(item) !== undefined
          ? entry("it is done", () => session.answerForm(item, { action: "accept", content: {} }))
          : entry("fill in", async () => formQuestion(item, (result) => session.answerForm(item, result))),
        entry("decline", () => session.answerForm(item, { action: "decline" })),
        entry("dismiss without an answer", () => session.answerForm(item, { action: "cancel" })),
      ];
    case "limit":
      return item.choices.map((choice) => entry(choiceLabel(item, choice), () => session.answerLimit(item, choice)));
    default:
      return [];
  }
}
