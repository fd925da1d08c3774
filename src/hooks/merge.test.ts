import { describe, expect, it } from "vitest";
import { type Merged, mergeRules } from "./merge.ts";
import type { HookOutput, HookPoint } from "./points.ts";

function merged<P extends HookPoint>(point: P, ...said: HookOutput<P>[]): Merged<P> {
  return said.reduce(mergeRules[point].merge, {} as Merged<P>);
}

const allow = { permissionDecision: "allow", permissionDecisionReason: "fine" } as const;
const ask = { permissionDecision: "ask", permissionDecisionReason: "hm" } as const;
const deny = { permissionDecision: "deny", permissionDecisionReason: "no" } as const;

describe("before a tool", () => {
  it.each([
    [[allow, ask, deny], deny],
    [[deny, ask, allow], deny],
    [[ask, allow], ask],
    [[allow, { permissionDecision: "ask" as const }], { permissionDecision: "ask" }],
    [[{}, allow], allow],
    [[deny, { ...deny, permissionDecisionReason: "later" }], deny],
  ])("before a tool, %o of several hooks becomes %o", (said, expected) => {
    expect(merged("preToolUse", ...said)).toEqual(expected);
  });

  it("before a tool, the last change of the arguments wins and revokes an earlier approval", () => {
    const change = { modifiedArgs: { a: 1 } };
    expect(merged("preToolUse", allow, change)).toEqual(change);
    expect(merged("preToolUse", allow, { ...change, ...allow })).toEqual({ ...change, ...allow });
    expect(merged("preToolUse", deny, change)).toEqual({ ...deny, ...change });
    expect(merged("preToolUse", change, { modifiedArgs: { a: 2 } })).toEqual({ modifiedArgs: { a: 2 } });
  });

  it("before a tool, the response of the first hook that handles the call is used", () => {
    const one = { handled: true, responseContent: "one", handledBy: "cache" };
    expect(merged("preToolUse", one, { handled: true, responseContent: "two" })).toEqual(one);
    expect(merged("preToolUse", { handled: false, responseContent: "not said" })).toEqual({});
  });

  it("before a tool, changed arguments are passed to the next hook", () => {
    const input = { sessionId: "s", cwd: "/", toolName: "bash", toolArgs: { a: 0 } };
    const { next } = mergeRules.preToolUse;
    expect(next?.(input, { modifiedArgs: { a: 1 } })).toEqual({ ...input, toolArgs: { a: 1 } });
    expect(next?.(input, {})).toBe(input);
  });
});

describe("context", () => {
  it.each([
    "sessionStart",
    "userPromptSubmitted",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "subagentStart",
    "notification",
  ] as const)("texts of several hooks are joined at %s with a blank line, up to 10 KB", (point) => {
    const said = [{ additionalContext: "one\n" }, {}, { additionalContext: "  " }, { additionalContext: "two" }];
    expect(merged(point, ...said)).toEqual({ additionalContext: "one\n\ntwo" });
    const long = { additionalContext: "x".repeat(9_000) };
    expect(merged(point, long, long).additionalContext).toHaveLength(10_000);
  });
});

describe("after a tool", () => {
  it("after a tool, the last result wins and is passed to the next hook", () => {
    const result = (text: string) => ({ resultType: "success" as const, textResultForLlm: text });
    expect(
      merged("postToolUse", { modifiedResult: result("a"), suppressOutput: true }, { modifiedResult: result("b") }),
    ).toEqual({
      modifiedResult: result("b"),
      suppressOutput: true,
    });
    const input = { sessionId: "s", cwd: "/", toolName: "bash", toolArgs: {}, toolResult: result("0") };
    expect(mergeRules.postToolUse.next?.(input, { modifiedResult: result("a") }).toolResult).toEqual(result("a"));
  });
});

describe("a permission request", () => {
  it("a permission request is answered by the last hook, except that a denial stays", () => {
    expect(
      merged("permissionRequest", { behavior: "allow", message: "a" }, { behavior: "allow", message: "b" }),
    ).toEqual({
      behavior: "allow",
      message: "b",
    });
    expect(merged("permissionRequest", { behavior: "allow" }, { behavior: "deny", message: "no" })).toEqual({
      behavior: "deny",
      message: "no",
    });
    expect(
      merged("permissionRequest", { behavior: "deny", message: "no" }, { behavior: "allow", message: "yes" }),
    ).toEqual({
      behavior: "deny",
      message: "no",
    });
    expect(merged("permissionRequest", { behavior: "deny" }, { behavior: "deny", interrupt: true })).toEqual({
      behavior: "deny",
      interrupt: true,
    });
  });
});

describe("a stop", () => {
  it.each(["agentStop", "subagentStop"] as const)(
    "a stop is blocked at %s when one hook blocks, with the reasons of all",
    (point) => {
      expect(
        merged(
          point,
          { decision: "allow" },
          { decision: "block", reason: "tests" },
          { decision: "allow", reason: "x" },
        ),
      ).toEqual({
        decision: "block",
        reason: "tests",
      });
      expect(merged(point, { decision: "block", reason: "a" }, { decision: "block", reason: "b" })).toEqual({
        decision: "block",
        reason: "a\n\nb",
      });
      expect(merged(point, { decision: "block" })).toEqual({ decision: "block" });
      expect(merged(point, { decision: "allow" })).toEqual({});
    },
  );

  it("a stop takes the last response that a hook wrote for a subagent", () => {
    expect(merged("subagentStop", { modifiedResponse: "a" }, { decision: "block" }, { modifiedResponse: "b" })).toEqual(
      {
        decision: "block",
        modifiedResponse: "b",
      },
    );
  });
});

describe("the other hook points", () => {
  it("other hook points take the last value of a field, and collect lists and members of objects", () => {
    expect(merged("preMcpToolCall", { metaToUse: { a: 1 } }, { metaToUse: null })).toEqual({ metaToUse: null });
    expect(merged("userPromptTransformed", { modifiedTransformedPrompt: "a" }, {})).toEqual({
      modifiedTransformedPrompt: "a",
    });
    expect(merged("errorOccurred", { errorHandling: "retry", retryCount: 2 }, { errorHandling: "abort" })).toEqual({
      errorHandling: "abort",
      retryCount: 2,
    });
    expect(merged("sessionEnd", { cleanupActions: ["a"] }, { cleanupActions: ["b"], sessionSummary: "s" })).toEqual({
      cleanupActions: ["a", "b"],
      sessionSummary: "s",
    });
    expect(merged("sessionStart", { modifiedConfig: { a: 1, b: 1 } }, { modifiedConfig: { b: 2 } })).toEqual({
      modifiedConfig: { a: 1, b: 2 },
    });
    expect(merged("userPromptSubmitted", { modifiedPrompt: "a" }, { modifiedPrompt: "b", handled: true })).toEqual({
      modifiedPrompt: "b",
      handled: true,
      responseContent: "",
    });
    expect(merged("preCompact", {})).toEqual({});
  });

  it("other hook points pass changed input to the next hook", () => {
    const mcp = { sessionId: "s", cwd: "/", serverName: "a", toolName: "b", arguments: {}, _meta: { old: 1 } };
    const { next } = mergeRules.preMcpToolCall;
    expect(next?.(mcp, { metaToUse: { a: 1 } })._meta).toEqual({ a: 1 });
    expect(next?.(mcp, { metaToUse: null })).not.toHaveProperty("_meta");
    expect(next?.(mcp, {})).toBe(mcp);
  });
});
