import { describe, expect, it } from "vitest";
import { claudeName } from "../../src/hooks/dialect.ts";
import { type HookInput, type HookPoint, hookPoints, pascalName } from "../../src/hooks/points.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { hookStage, hooksOf, place } from "./stage.ts";

const agent = {
  transcriptPath: "/state/events.jsonl",
  agentName: "explore",
  agentDisplayName: "Explore",
  agentId: "a-1",
  agentType: "explore",
  parentAgentId: "root",
};
const call = { toolName: "bash", toolArgs: { command: "ls" } };

/** An input for every point, and what its hook reads from stdin in each dialect. */
const cases: { [P in HookPoint]: { input: Omit<HookInput<P>, "sessionId" | "cwd">; camel: object; pascal: object } } = {
  sessionStart: {
    input: { source: "new", initialPrompt: "Hello" },
    camel: { source: "new", initialPrompt: "Hello" },
    pascal: { source: "new", initial_prompt: "Hello" },
  },
  sessionEnd: {
    input: { reason: "complete", finalMessage: "Done" },
    camel: { reason: "complete", finalMessage: "Done" },
    pascal: { reason: "complete", final_message: "Done" },
  },
  userPromptSubmitted: { input: { prompt: "Hi" }, camel: { prompt: "Hi" }, pascal: { prompt: "Hi" } },
  userPromptTransformed: {
    input: { prompt: "Hi", transformedPrompt: "Hi!" },
    camel: { prompt: "Hi", transformedPrompt: "Hi!" },
    pascal: { prompt: "Hi", transformed_prompt: "Hi!" },
  },
  preToolUse: {
    input: call,
    camel: { toolName: "bash", toolArgs: '{"command":"ls"}' },
    pascal: { tool_name: "Bash", tool_input: { command: "ls" } },
  },
  postToolUse: {
    input: { ...call, toolResult: { resultType: "success", textResultForLlm: "a.txt" } },
    camel: {
      toolName: "bash",
      toolArgs: '{"command":"ls"}',
      toolResult: { resultType: "success", textResultForLlm: "a.txt" },
    },
    pascal: {
      tool_name: "Bash",
      tool_input: { command: "ls" },
      tool_result: { result_type: "success", text_result_for_llm: "a.txt" },
    },
  },
  postToolUseFailure: {
    input: { ...call, error: "no" },
    camel: { toolName: "bash", toolArgs: '{"command":"ls"}', error: "no" },
    pascal: { tool_name: "Bash", tool_input: { command: "ls" }, error: "no" },
  },
  permissionRequest: {
    input: {
      hookName: "permissionRequest",
      toolName: "edit",
      toolInput: { path: "a", diff: "" },
      permissionSuggestions: [],
    },
    camel: {
      hookName: "permissionRequest",
      toolName: "edit",
      toolInput: { path: "a", diff: "" },
      permissionSuggestions: [],
    },
    pascal: {
      hook_name: "permissionRequest",
      tool_name: "Edit",
      tool_input: { path: "a", diff: "" },
      permission_suggestions: [],
    },
  },
  preMcpToolCall: {
    input: { serverName: "git", toolName: "log", arguments: { n: 1 }, toolCallId: "c-1", _meta: { a: 1 } },
    camel: { serverName: "git", toolName: "log", arguments: { n: 1 }, toolCallId: "c-1", _meta: { a: 1 } },
    pascal: { server_name: "git", tool_name: "log", arguments: { n: 1 }, tool_call_id: "c-1", _meta: { a: 1 } },
  },
  agentStop: {
    input: { transcriptPath: "/state/events.jsonl", stopReason: "end_turn", stop_hook_active: true },
    camel: { transcriptPath: "/state/events.jsonl", stopReason: "end_turn", stop_hook_active: true },
    pascal: { transcript_path: "/state/events.jsonl", stop_reason: "end_turn", stop_hook_active: true },
  },
  subagentStart: {
    input: { ...agent, agentDescription: "Looks around" },
    camel: { ...agent, agentDescription: "Looks around" },
    pascal: {
      transcript_path: "/state/events.jsonl",
      agent_name: "explore",
      agent_display_name: "Explore",
      agent_id: "a-1",
      agent_type: "explore",
      parent_agent_id: "root",
      agent_description: "Looks around",
    },
  },
  subagentStop: {
    input: { ...agent, response: "Found", stopReason: "end_turn", stop_hook_active: false },
    camel: { ...agent, response: "Found", stopReason: "end_turn", stop_hook_active: false },
    pascal: {
      transcript_path: "/state/events.jsonl",
      agent_name: "explore",
      agent_display_name: "Explore",
      agent_id: "a-1",
      agent_type: "explore",
      parent_agent_id: "root",
      response: "Found",
      stop_reason: "end_turn",
      stop_hook_active: false,
    },
  },
  preCompact: {
    input: { transcriptPath: "/t", trigger: "auto", customInstructions: "" },
    camel: { transcriptPath: "/t", trigger: "auto", customInstructions: "" },
    pascal: { transcript_path: "/t", trigger: "auto", custom_instructions: "" },
  },
  errorOccurred: {
    input: { error: { message: "m", name: "Error" }, errorContext: "model_call", recoverable: true },
    camel: { error: { message: "m", name: "Error" }, errorContext: "model_call", recoverable: true },
    pascal: { error: { message: "m", name: "Error" }, error_context: "model_call", recoverable: true },
  },
  notification: {
    input: { message: "Done", title: "T", notification_type: "agent_completed" },
    camel: { message: "Done", title: "T", notification_type: "agent_completed" },
    pascal: { message: "Done", title: "T", notification_type: "agent_completed" },
  },
};

describe("ORC-54: the input of a hook on stdin", () => {
  it.each(hookPoints)("ORC-54: a hook's input on stdin has all fields in both dialects at %s", async (point) => {
    await using folder = await tempFolder();
    const definitions = hooksOf({
      [point]: [{ bash: "cat > camel.json" }],
      [pascalName(point)]: [{ bash: "cat > pascal.json" }],
    });
    const { hooks } = hookStage(definitions, { projectRoot: folder.path });
    const { input, camel, pascal } = cases[point];
    await hooks.fire(point, { ...place, ...input } as HookInput<typeof point>);
    expect(JSON.parse(await folder.read("camel.json"))).toEqual({
      sessionId: "s-1",
      timestamp: Date.UTC(2026, 0, 1),
      cwd: "/project",
      ...camel,
    });
    expect(JSON.parse(await folder.read("pascal.json"))).toEqual({
      hook_event_name: pascalName(point),
      session_id: "s-1",
      timestamp: "2026-01-01T00:00:00.000Z",
      cwd: "/project",
      ...pascal,
    });
  });
});

describe("names of tools", () => {
  it("tool names for hooks are translated to those of Claude", () => {
    expect(["bash", "view", "rg", "task", "str_replace_editor", "sql"].map(claudeName)).toEqual([
      "Bash",
      "Read",
      "Grep",
      "Agent",
      "Edit",
      "sql",
    ]);
  });
});
