/**
 * Tools of servers as `Tool`s. They are offered from a listing, current or stored; the server is connected on the first
 * call.
 */

import { isDeepStrictEqual } from "node:util";
import { defined } from "../../lib/defined.ts";
import { isObject, type Json } from "../../lib/json.ts";
import { withoutTags } from "../../lib/quoting.ts";
import type { BoundCall, Tool, ToolContext } from "../tool.ts";
import { ToolError, type ToolResult } from "../tool-error.ts";
import { PERSON_TIMEOUT_MS } from "../user/user.ts";
import { isFor } from "./apps.ts";
import { cleanLine, cleanText } from "./bounds.ts";
import type { McpServerPort } from "./connections.ts";
import { modelNames } from "./names.ts";
import { toToolResult } from "./result.ts";
import type { McpToolDefinition } from "./server.ts";
import { type McpWork, untilTask } from "./tasks/background.ts";
import type { McpTaskStatus } from "./tasks/call-as-task.ts";

type PinVerdict = "ok" | "changed" | "new";

export interface McpToolsOptions {
  /** Names that built-in tools and client programs already use. */
  readonly reservedNames: Iterable<string>;
  /** Checks whether the definition is the approved one. */
  readonly pins?: { check(definition: McpToolDefinition): PinVerdict | Promise<PinVerdict> };
  onTask?(call: McpCallInfo, status: McpTaskStatus): void;
}

interface McpCallInfo {
  readonly serverName: string;
  readonly toolName: string;
  readonly arguments: Record<string, Json>;
  readonly toolCallId: string;
}

export interface ToolServer {
  readonly server: McpServerPort;
  /** Listed now or stored from before; a call compares them with the server's current listing. */
  readonly definitions: readonly McpToolDefinition[];
}

const MAX_DESCRIPTION_CHARACTERS = 2000;
const MAX_TEXT_CHARACTERS = 1000;

export function mcpTools(offered: readonly ToolServer[], options: McpToolsOptions): Tool[] {
  const pairs = offered.flatMap(({ server, definitions }) =>
    definitions.filter((one) => isFor("model", one)).map((definition) => ({ server, definition })),
  );
  const names = modelNames(
    pairs.map(({ definition }) => definition),
    options.reservedNames,
  );
  return pairs.map(({ server, definition }, index) =>
    mcpTool({ name: names[index] ?? "", server, definition, options, inOrder: inReleaseOrder() }),
  );
}

interface Offer {
  readonly name: string;
  readonly server: McpServerPort;
  readonly definition: McpToolDefinition;
  readonly options: McpToolsOptions;
  /** Keeps the calls of one reply in their order, so that the ids of their tasks are numbered like the calls. */
  readonly inOrder: <T>(check: Promise<T>) => Promise<T>;
}

/** Checks run at the same time; each result is released after those of earlier checks. */
function inReleaseOrder(): Offer["inOrder"] {
  let earlier: Promise<unknown> = Promise.resolve();
  return async (check) => {
    const before = earlier;
    earlier = Promise.allSettled([before, check]).then(() => undefined);
    await before;
    return check;
  };
}

function mcpTool(offer: Offer): Tool {
  const { name, definition, server } = offer;
  const words = cleanText(definition.description, MAX_DESCRIPTION_CHARACTERS).trim();
  return {
    name,
    description: words === "" ? `${titleOf(definition)} (MCP server ${definition.server})` : words,
    parameters: readableSchema(definition.inputSchema),
    // A call may change something even if the server says it does not.
    readOnly: false,
    exclusive: false,
    endsAnswer: false,
    // Calls have their own clock, which is paused while the user is asked.
    timeoutMs: PERSON_TIMEOUT_MS,
    origin: { kind: "mcp", serverName: definition.server, toolName: definition.name },
    ...defined({ deferral: server.config.deferTools }),
    bind: (rawArguments) => bindCall(offer, rawArguments),
  };
}

function bindCall(offer: Offer, rawArguments: unknown): BoundCall {
  const given = rawArguments ?? {};
  if (!isObject(given)) throw new ToolError(`Bad arguments for ${offer.name}: give an object.`);
  const { definition } = offer;
  const checked = given as Record<string, Json>;
  return {
    access: async () => [
      {
        kind: "mcp",
        serverName: definition.server,
        toolName: definition.name,
        toolTitle: titleOf(definition),
        ...(definition.description && { toolDescription: definition.description }),
        args: checked,
        readOnly: false,
      },
    ],
    run: (context) => run(offer, checked, context),
  };
}

async function run(offer: Offer, given: Record<string, Json>, context: ToolContext): Promise<ToolResult> {
  const { server, options } = offer;
  const { signal, toolCallId } = context;
  const definition = await offer.inOrder(currentDefinition(offer, signal));
  const info = { serverName: definition.server, toolName: definition.name, arguments: given, toolCallId };
  const meta = await context.beforeMcpCall?.(info, signal);
  signal.throwIfAborted();
  const work: McpWork = async (io) => {
    const result = await server.call({
      definition,
      arguments: given,
      toolCallId,
      signal: io.signal,
      ...(meta && { meta }),
      onProgress: io.onProgress,
      onTask(status) {
        options.onTask?.(info, status);
        io.onStatus(status);
      },
    });
    return toToolResult(result, { config: server.config, toolName: definition.name });
  };
  const { mcpTasks } = context;
  const foreground = { signal, onProgress: (text: string) => context.progress(text) };
  if (!mcpTasks) return work({ ...foreground, onStatus: () => undefined });
  if (definition.taskSupport === "required") return mcpTasks.start(info, work, signal);
  return untilTask(work, foreground, (rest, underWay) => mcpTasks.start({ ...info, underWay }, rest, signal));
}

/**
 * Returns the server's current definition. Throws when it differs from the one that the model saw or the user approved.
 */
async function currentDefinition(
  { server, definition, options }: Offer,
  signal: AbortSignal,
): Promise<McpToolDefinition> {
  const tool = `The tool ${cleanLine(definition.name, 100)} of the MCP server ${definition.server}`;
  const current = (await server.definitions(signal)).find(({ name }) => name === definition.name);
  if (current === undefined) throw new ToolError(`${tool} is no longer available.`);
  const verdict = await options.pins?.check(current);
  if (verdict === "changed") {
    const remedy = `The user must review it and approve it again: troupe mcp approve ${definition.server}`;
    throw new ToolError(`${tool} has changed since it was approved, so it was not called. ${remedy}`, {
      code: "denied",
    });
  }
  if (!isSame(current, definition))
    throw new ToolError(
      `${tool} has changed since you received it, so it was not called. You receive its new definition with the next message.`,
    );
  return current;
}

/** Compares the parts that a model or the user decides by. */
function isSame(one: McpToolDefinition, other: McpToolDefinition): boolean {
  return one.description === other.description && isDeepStrictEqual(one.inputSchema, other.inputSchema);
}

function titleOf({ title, annotations, name }: McpToolDefinition): string {
  return cleanLine(title ?? annotations?.title ?? name, 200);
}

/** Returns the schema with its descriptions bounded and sanitised; the caller must have checked its depth. */
function readableSchema(schema: object): object {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    (key === "description" || key === "title" || key === "$comment") && typeof value === "string"
      ? cleanText(value, MAX_TEXT_CHARACTERS)
      : value,
  );
  return JSON.parse(withoutTags(text));
}
