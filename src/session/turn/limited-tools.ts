import { resolve } from "node:path";
import type { ToolLimits } from "../../commands/command.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { Tool } from "../../tools/tool.ts";
import { ToolError } from "../../tools/tool-error.ts";

/**
 * The main agent's tools while it answers a message whose command limits them. There is one object per message, so that
 * files with long results are remembered if the answer continues with another model.
 */
export class LimitedTools {
  readonly #limits: ToolLimits;
  readonly #cwd: string;
  readonly #guarded = new Map<Tool, Tool>();
  /** Files with long results, by tool. */
  readonly #outputs = new Map<string, Set<string>>();

  constructor(limits: ToolLimits, cwd: string) {
    this.#limits = limits;
    this.#cwd = cwd;
  }

  /** Returns the tools that the answer may use. A refused call is not bound, and no hook runs for it. */
  of(tools: readonly Tool[]): readonly Tool[] {
    const { available, reasonToRefuse } = this.#limits;
    const allowed = tools.filter(({ name }) => available.includes(name));
    return reasonToRefuse ? allowed.map((tool) => this.#guard(tool)) : allowed;
  }

  /** Remembers the file that holds a long result of a tool. */
  addOutput(toolName: string, path: string): void {
    const paths = this.#outputs.get(toolName) ?? new Set();
    this.#outputs.set(toolName, paths.add(resolve(this.#cwd, path)));
  }

  /** Returns an `Emit` whose notices about agents do not recommend a tool that the answer does not have. */
  withoutAdvice(emit: Emit): Emit {
    if (this.#limits.available.includes("read_agent")) return emit;
    return (type, data) => {
      if (type !== "system.notification") return emit(type, data);
      const notice = data as EventData<"system.notification">;
      return emit("system.notification", { ...notice, content: notice.content.replace(ADVICE, UNREADABLE) });
    };
  }

  #guard(tool: Tool): Tool {
    const known = this.#guarded.get(tool);
    if (known) return known;
    const guarded: Tool = {
      ...tool,
      bind: (rawArguments) => {
        this.#require(tool.name, rawArguments);
        return tool.bind(rawArguments);
      },
    };
    this.#guarded.set(tool, guarded);
    return guarded;
  }

  #require(toolName: string, rawArguments: unknown): void {
    const why = this.#limits.reasonToRefuse?.({
      toolName,
      arguments: rawArguments,
      resolve: (path) => resolve(this.#cwd, path),
      isOutputOf: (name, path) => path !== "" && (this.#outputs.get(name)?.has(resolve(this.#cwd, path)) ?? false),
    });
    if (why !== undefined) throw new ToolError(why, { code: "denied" });
  }
}

/** The part of a notice that recommends `read_agent`. */
const ADVICE = /Use read_agent with agent_id [^\n<]*/;
const UNREADABLE = "Its results cannot be read while this message is answered.";
