import { describe, expect, it } from "vitest";
import { scheduleRequest } from "../../src/commands/schedule/schedule-request.ts";

describe("the time of a schedule", () => {
  it.each([
    ["10s", 10_000],
    ["30S", 30_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["86400s", 86_400_000],
  ])("the time of a schedule is parsed: %s", (text, intervalMs) => {
    expect(scheduleRequest(`${text} go`, "every")).toEqual({
      prompt: "go",
      displayPrompt: "go",
      intervalMs,
      recurring: true,
    });
  });

  it.each(["9s", "0m", "2d", "86401s", "25h", "5", "m", "-5m", "1.5h", "5 m go", "999999999999d", ""])(
    "the time %j of a schedule is refused",
    (text) => {
      expect(() => scheduleRequest(`${text} go`.trim(), "after")).toThrow(expect.objectContaining({ kind: "usage" }));
    },
  );

  it.each([
    ["5m", "The prompt to schedule is missing."],
    ["5m   ", "The prompt to schedule is missing."],
    ["5m /review", "Commands cannot be scheduled."],
    [`5m ${"x".repeat(100_001)}`, "A scheduled prompt has at most 100000 characters."],
    ["", "A time is missing."],
  ])("a schedule without a valid prompt is refused: %.20j", (text, message) => {
    expect(() => scheduleRequest(text, "after")).toThrow(message);
  });
});
