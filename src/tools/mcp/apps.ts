/**
 * Apps of servers: pages that a client shows beside a tool result, and that may call tools of their own server. This
 * module parses a server's declarations for a tool.
 */
import { defined } from "../../lib/defined.ts";
import { isObject } from "../../lib/json.ts";
import type { McpToolDefinition, McpToolInterface } from "./server.ts";

/** Servers offer interfaces only to clients that announce they can show them. */
export const UI_EXTENSION = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };

const MAX_URI_CHARACTERS = 4096;
const AUDIENCES = ["model", "app"] as const;

export function interfaceOf(meta: unknown): McpToolInterface | undefined {
  if (!isObject(meta)) return undefined;
  const said = isObject(meta.ui) ? meta.ui : {};
  const uri = said.resourceUri ?? meta["ui/resourceUri"];
  const isShown = typeof uri === "string" && uri.startsWith("ui://") && uri.length <= MAX_URI_CHARACTERS;
  const { visibility } = said;
  const named = Array.isArray(visibility) ? AUDIENCES.filter((one) => visibility.includes(one)) : undefined;
  if (!isShown && named === undefined) return undefined;
  return { ...(isShown && { resourceUri: uri }), ...defined({ visibility: named }) };
}

/** Without a declared audience, a tool is for everyone. */
export const isFor = (audience: (typeof AUDIENCES)[number], { ui }: McpToolDefinition): boolean =>
  ui?.visibility?.includes(audience) ?? true;
