/**
 * Apps of servers: pages that a client shows beside what a tool says, and that may call tools of their own server. Here is
 * what a server says of a tool in that respect, cut down to what is understood.
 */
import { isObject } from "../../lib/json.ts";
import type { McpToolDefinition, McpToolInterface } from "./server.ts";

/** Servers show interfaces to those alone who say that they can show them. */
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
  return { ...(isShown && { resourceUri: uri }), ...(named && { visibility: named }) };
}

/** Everyone, unless the server says for whom a tool is. */
export const isFor = (audience: (typeof AUDIENCES)[number], { ui }: McpToolDefinition): boolean =>
  ui?.visibility?.includes(audience) ?? true;
