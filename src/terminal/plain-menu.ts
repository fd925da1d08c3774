/** The answers to a request as a numbered menu. */
import type { AttentionItem } from "../view/view.ts";
import type { TerminalSession } from "./session.ts";

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
        entry("approve once", decide({ kind: "approve-once" })),
        ...(item.canAllowForSession
          ? [entry("approve for this session", decide({ kind: "approve-for-session" }))]
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
