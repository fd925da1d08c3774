/** Reads a server's list of tools and drops what cannot be offered. Each dropped tool is reported. */

import type { Client } from "@modelcontextprotocol/client";
import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { isObject } from "../../lib/json.ts";
import { interfaceOf } from "./apps.ts";
import { cleanLine, jsonProblem } from "./bounds.ts";
import type { McpServerConfig, McpToolAnnotations, McpToolDefinition } from "./server.ts";
import { LIBRARY_MS } from "./tasks/call-clock.ts";
import { headerProblem } from "./tool-headers.ts";

export interface ToolListing {
  readonly definitions: readonly McpToolDefinition[];
  /** Notices about dropped tools, for the user. */
  readonly notices: readonly string[];
}

const MAX_PAGES = 20;
const MAX_TOOLS_PER_SERVER = 256;
const MAX_NAME_CHARACTERS = 256;
/** The user who approves sees this much; the model gets less. */
const MAX_DESCRIPTION_CHARACTERS = 16 * 1024;
const SCHEMA_LIMITS = { depth: 32, nodes: 5000, characters: 32 * 1024 };
const MAX_NOTICES = 10;

/** Looser than the protocol: one malformed tool must not drop the others. */
const page = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().max(4096).optional() });

/** Lists all pages. Only the signal bounds the time. */
export async function listTools(
  client: Client,
  { name: server, transport }: McpServerConfig,
  signal: AbortSignal,
): Promise<ToolListing> {
  const hasHeaders = transport.type !== "stdio" && client.getProtocolEra() === "modern";
  const found = new Map<string, McpToolDefinition>();
  const notices = new Set<string>();
  const addNotice = (notice: string): void => {
    if (notices.size < MAX_NOTICES) notices.add(`MCP server ${server}: ${notice}`);
  };
  let cursor: string | undefined;
  for (let pages = 1; ; pages++) {
    const request = { method: "tools/list", ...(cursor !== undefined && { params: { cursor } }) };
    const { tools, nextCursor } = await client.request(request, page, { timeout: LIBRARY_MS, signal });
    for (const tool of tools) {
      if (found.size >= MAX_TOOLS_PER_SERVER) break;
      const read = readDefinition(tool, { server, hasHeaders });
      if (typeof read === "string") addNotice(read);
      else if (found.has(read.name))
        addNotice(`the tool ${cleanLine(read.name, 80)} is listed twice; the first one is used.`);
      else found.set(read.name, read);
    }
    if (found.size >= MAX_TOOLS_PER_SERVER && (nextCursor !== undefined || tools.length > found.size)) {
      addNotice(`it lists more than ${MAX_TOOLS_PER_SERVER} tools; the others are not used.`);
      break;
    }
    if (nextCursor === undefined || nextCursor === cursor) break;
    if (pages === MAX_PAGES) {
      addNotice(`its list of tools has more than ${MAX_PAGES} pages; the others are not used.`);
      break;
    }
    cursor = nextCursor;
  }
  return { definitions: [...found.values()], notices: [...notices] };
}

/** Returns the definition, or why the tool is dropped. */
function readDefinition(
  tool: unknown,
  { server, hasHeaders }: { readonly server: string; readonly hasHeaders: boolean },
): McpToolDefinition | string {
  if (!isObject(tool) || typeof tool.name !== "string" || tool.name === "") return "a tool without a name is left out.";
  const { name, description, title, inputSchema, outputSchema } = tool;
  const left = (why: string): string => `the tool ${cleanLine(name, 80)} is left out: ${why}.`;
  if (name.length > MAX_NAME_CHARACTERS) return left(`its name is longer than ${MAX_NAME_CHARACTERS} characters`);
  if (!isObject(inputSchema) || inputSchema.type !== "object") return left("its schema does not describe an object");
  const problem = jsonProblem(inputSchema, SCHEMA_LIMITS);
  if (problem !== undefined) return left(`its schema ${problem}`);
  const broken = hasHeaders ? headerProblem(inputSchema) : undefined;
  if (broken !== undefined) return left(broken);
  const hasOutput = isObject(outputSchema) && jsonProblem(outputSchema, SCHEMA_LIMITS) === undefined;
  const annotations = annotationsOf(tool.annotations);
  const ui = interfaceOf(tool._meta);
  const taskSupport = isObject(tool.execution) ? tool.execution.taskSupport : undefined;
  return {
    server,
    name,
    description: typeof description === "string" ? description.slice(0, MAX_DESCRIPTION_CHARACTERS) : "",
    inputSchema,
    ...(typeof title === "string" && title !== "" && { title: title.slice(0, MAX_NAME_CHARACTERS) }),
    ...(hasOutput && { outputSchema }),
    ...defined({ annotations }),
    ...((taskSupport === "required" || taskSupport === "optional") && { taskSupport }),
    ...defined({ ui }),
  };
}

function annotationsOf(value: unknown): McpToolAnnotations | undefined {
  if (!isObject(value)) return undefined;
  const hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;
  const kept = hints.flatMap((hint) => (typeof value[hint] === "boolean" ? [[hint, value[hint]] as const] : []));
  const title = typeof value.title === "string" ? { title: value.title.slice(0, MAX_NAME_CHARACTERS) } : {};
  return { ...title, ...Object.fromEntries(kept) };
}
