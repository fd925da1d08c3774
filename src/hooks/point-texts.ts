/** When each hook runs, and the fields of its input, for the reference page. The type makes a missing one an error. */
import type { HookInputs, HookPoint } from "./points.ts";

interface PointText<P extends HookPoint> {
  readonly when: string;
  readonly input: Readonly<Record<keyof HookInputs[P], string>>;
}

const toolCall = { toolName: "name of the tool", toolArgs: "its arguments", source: "`mcp_app` if an MCP app calls" };
const subagent = {
  transcriptPath: "file with the agent's conversation",
  agentName: "name of the agent",
  agentDisplayName: "its name for users",
  agentId: "id of its task",
  agentType: "type of the agent",
  parentAgentId: "the agent that started it, unless that is the main agent",
};

export const pointTexts: { readonly [P in HookPoint]: PointText<P> } = {
  sessionStart: {
    when: "A session was created or resumed.",
    input: { source: "`startup`, `resume` or `new`", initialPrompt: "the first prompt, if there is one" },
  },
  sessionEnd: {
    when: "A session ends.",
    input: {
      reason: "`complete`, `error`, `abort`, `timeout` or `user_exit`",
      finalMessage: "the last answer",
      error: "the error",
    },
  },
  userPromptSubmitted: { when: "Before a prompt is recorded.", input: { prompt: "the prompt" } },
  userPromptTransformed: {
    when: "After a prompt was expanded, before the model gets it.",
    input: { prompt: "the prompt as typed", transformedPrompt: "the prompt as sent" },
  },
  preToolUse: { when: "Before a tool call.", input: toolCall },
  postToolUse: {
    when: "After a tool call that succeeded.",
    input: { ...toolCall, toolResult: "`resultType` and `textResultForLlm`" },
  },
  postToolUseFailure: { when: "After a tool call that failed.", input: { ...toolCall, error: "the error" } },
  permissionRequest: {
    when: "Before the user is asked for a permission.",
    input: {
      hookName: "`permissionRequest`",
      toolName: "name of the tool",
      toolInput: "its arguments",
      permissionSuggestions: "approvals that could be stored",
    },
  },
  preMcpToolCall: {
    when: "Before a call is sent to an MCP server.",
    input: {
      serverName: "name of the server",
      toolName: "name of the tool there",
      arguments: "its arguments",
      toolCallId: "id of the call",
      _meta: "metadata of the request",
    },
  },
  agentStop: {
    when: "Before the main agent stops.",
    input: {
      transcriptPath: "file with the conversation",
      stopReason: "`end_turn`",
      stop_hook_active: "`true` if a hook already blocked this stop",
    },
  },
  subagentStart: {
    when: "Before another agent starts.",
    input: { ...subagent, agentDescription: "description of the agent" },
  },
  subagentStop: {
    when: "Before another agent hands over an answer, and when it ends without one.",
    input: {
      ...subagent,
      response: "the answer",
      stopReason: "`end_turn`, `error`, `limit` or `cancelled`",
      stop_hook_active: "`true` if a hook already blocked this stop",
    },
  },
  preCompact: {
    when: "Before the conversation is summarised.",
    input: {
      transcriptPath: "file with the conversation",
      trigger: "`manual` or `auto`",
      customInstructions: "what the user wants to keep",
    },
  },
  errorOccurred: {
    when: "An error occurred.",
    input: {
      error: "`message`, `name` and `stack`",
      errorContext: "`model_call`, `tool_execution`, `system` or `user_input`",
      recoverable: "whether the session can continue",
    },
  },
  notification: {
    when: "The user is notified.",
    input: {
      message: "the text",
      title: "its title",
      notification_type:
        "`agent_completed`, `agent_idle`, `shell_completed`, `shell_detached_completed`, `permission_prompt` or `elicitation_dialog`",
    },
  },
};
