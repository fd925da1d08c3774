import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { fillForm, terminalForms } from "./fill-form.ts";

const form = {
  kind: "elicitation" as const,
  requestId: "r",
  message: "Which seat?",
  mode: "form" as const,
  elicitationSource: "theatre",
  requestedSchema: {
    type: "object" as const,
    properties: {
      row: { type: "integer", description: "From 1" },
      side: { type: "string", enum: ["left", "right"] },
      aisle: { type: "boolean", default: true },
      note: { type: "string" },
    },
    required: ["row", "side"],
  },
};

/** Answers with these lines in turn, then the end of the input. */
function typed(...lines: string[]) {
  const asked: string[] = [];
  const ask = async (question: string) => {
    asked.push(question);
    return lines.shift();
  };
  return { asked, ask };
}

describe("a form on the terminal", () => {
  it("a form on the terminal is filled in field by field; empty lines leave defaults and optional fields out", async () => {
    const { ask, asked } = typed("y", "7", "left", "", "");
    expect(await fillForm(form, ask)).toEqual({ action: "accept", content: { row: 7, side: "left" } });
    expect(asked[0]).toContain("The MCP server theatre asks");
    expect(asked[2]).toBe("  side (left | right): ");
    expect(asked[3]).toBe("  aisle (boolean; default: true; optional): ");
  });

  it("a form on the terminal asks again for a value that does not fit, and gives up after three", async () => {
    expect(await fillForm(form, typed("y", "seven", "7", "right", "n", "by the door").ask)).toEqual({
      action: "accept",
      content: { row: 7, side: "right", aisle: false, note: "by the door" },
    });
    expect(await fillForm(form, typed("y", "a", "b", "c").ask)).toEqual({ action: "cancel" });
  });

  it("a form on the terminal is declined by no and cancelled by the end of the input", async () => {
    expect(await fillForm(form, typed("n").ask)).toEqual({ action: "decline" });
    expect(await fillForm(form, typed().ask)).toEqual({ action: "cancel" });
    expect(await fillForm(form, typed("y", "7").ask)).toEqual({ action: "cancel" });
  });

  it("a form on the terminal shows an address and opens nothing", async () => {
    const { requestedSchema: _, ...rest } = form;
    const { ask, asked } = typed("yes");
    const request = { ...rest, mode: "url" as const, url: "https://seats.example.com/a" };
    expect(await fillForm(request, ask)).toEqual({ action: "accept" });
    expect(asked[0]).toContain("Open this address yourself: https://seats.example.com/a");
  });

  it("a form on the terminal shows a message without its control characters", async () => {
    const { ask, asked } = typed();
    await fillForm({ ...form, message: "hi\u001b[2J\u0007there" }, ask);
    expect(asked[0]).not.toMatch(/[\u001b\u0007]/);
  });

  it("a form on the terminal hides the live lines while it is shown, and reads the terminal", async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const steps: string[] = [];
    const answerer = terminalForms({
      input,
      output,
      pause: () => {
        steps.push("paused");
        return () => void steps.push("resumed");
      },
    });
    const { requestedSchema: _, ...rest } = form;
    const request = { ...rest, mode: "url" as const, url: "https://seats.example.com/a" };
    const answer = answerer.handle?.(request, new AbortController().signal);
    input.write("y\n");
    expect(await answer).toEqual({ action: "accept" });
    expect(steps).toEqual(["paused", "resumed"]);
  });
});
