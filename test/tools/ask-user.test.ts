import { expect, test } from "vitest";
import type { ToolContext } from "../../src/tools/tool.ts";
import { askUser } from "../../src/tools/user/ask-user.ts";
import type { Question, User, UserAnswer } from "../../src/tools/user/user.ts";
import { contentOf, contextFor, failureOf } from "./workspace.ts";

function asked(answer: UserAnswer | "unavailable"): { context: ToolContext; questions: Question[] } {
  const questions: Question[] = [];
  const user: User = {
    async ask(question) {
      questions.push(question);
      return answer;
    },
    reviewPlan: async () => "unavailable",
  };
  return { context: { ...contextFor("/"), user }, questions };
}

test("a choice is reported as selected, own words as a response", async () => {
  const chosen = asked({ answer: "Red", wasFreeform: false });
  const input = { question: " Which colour? ", choices: ["Red", "Blue"], allow_freeform: false };
  expect(await contentOf(askUser, input, chosen.context)).toBe("User selected: Red");
  expect(chosen.questions).toEqual([
    { question: "Which colour?", choices: ["Red", "Blue"], allowFreeform: false, toolCallId: "call_1" },
  ]);
  const said = asked({ answer: "green, please", wasFreeform: true });
  expect(await contentOf(askUser, { question: "Which?" }, said.context)).toBe("User responded: green, please");
});

test("a question without choices can always be answered", async () => {
  const it = asked({ answer: "x", wasFreeform: true });
  await contentOf(askUser, { question: "?", choices: [], allow_freeform: false }, it.context);
  expect(it.questions).toEqual([{ question: "?", allowFreeform: true, toolCallId: "call_1" }]);
});

test("ask_user tells the model to decide when no user is there", async () => {
  const message = expect.stringContaining("Choose what is most likely wanted");
  expect(await failureOf(askUser, { question: "?" }, asked("unavailable").context)).toEqual({
    code: "failure",
    message,
  });
  expect(await failureOf(askUser, { question: "?" }, contextFor("/"))).toEqual({ code: "failure", message });
});

test("ask_user is neither exclusive nor terminal, so it does not block its siblings", () => {
  expect({ exclusive: askUser.exclusive, endsAnswer: askUser.endsAnswer }).toEqual({
    exclusive: false,
    endsAnswer: false,
  });
});

test("an empty question and a flood of choices are refused", async () => {
  const { context } = asked({ answer: "x", wasFreeform: true });
  expect((await failureOf(askUser, { question: "  " }, context)).message).toContain("question");
  expect((await failureOf(askUser, { question: "?", choices: Array(30).fill("a") }, context)).message).toContain(
    "choices",
  );
});

test("a very long answer is bounded", async () => {
  const { context } = asked({ answer: "x".repeat(100_000), wasFreeform: true });
  expect((await contentOf(askUser, { question: "?" }, context)).length).toBeLessThan(20_100);
});
