/** Limits the main agent during research: it starts research agents and writes one report. */
import type { LimitedCall, ToolLimits } from "../command.ts";

export const RESEARCH_AGENT = "research";

export function researchLimits(reportPath: string): ToolLimits {
  return {
    available: ["task", "create", "view"],
    reasonToRefuse(call) {
      switch (call.toolName) {
        case "task":
          return taskRefusal(call);
        case "view":
          return viewRefusal(call);
        case "create":
          return createRefusal(call, reportPath);
        default:
          return `${call.toolName} is not part of research.`;
      }
    },
  };
}

function taskRefusal({ arguments: given }: LimitedCall): string | undefined {
  const advice = `Call task with agent_type "${RESEARCH_AGENT}" and mode "sync".`;
  const agent = argumentOf(given, "agent_type");
  if (plainName(agent) !== RESEARCH_AGENT) {
    return `Research uses only the agent "${RESEARCH_AGENT}"; ${JSON.stringify(agent.slice(0, 80))} was not started. ${advice}`;
  }
  const mode = argumentOf(given, "mode");
  if (mode === "" || mode === "sync") return undefined;
  return `Research agents are not started in the background: their answers could not be read. ${advice}`;
}

function viewRefusal(call: LimitedCall): string | undefined {
  const path = argumentOf(call.arguments, "path");
  if (call.isOutputOf("task", path)) return undefined;
  return "In research, view opens only a file that a result of task names as the location of a long answer. Start a research agent to read anything else.";
}

function createRefusal(call: LimitedCall, reportPath: string): string | undefined {
  const path = argumentOf(call.arguments, "path");
  if (path !== "" && call.resolve(path) === call.resolve(reportPath)) return undefined;
  return `In research, create writes only the report. Its path is ${reportPath}`;
}

/** Returns a text argument of a call without surrounding whitespace; "" if there is none. */
export function argumentOf(given: unknown, name: string): string {
  if (typeof given !== "object" || given === null || !Object.hasOwn(given, name)) return "";
  const value: unknown = Reflect.get(given, name);
  return typeof value === "string" ? value.trim() : "";
}

/** Normalizes an agent name for comparison: case, spaces and underscores do not matter. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[\s_]+/g, "-");
}
