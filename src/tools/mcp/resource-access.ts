/** Lists and reads the resources of a server, within limits. */
import type { Client } from "@modelcontextprotocol/client";
import * as z from "zod";
import { isObject } from "../../lib/json.ts";
import { ToolError } from "../tool-error.ts";
import { cleanLine, cleanText } from "./bounds.ts";
import type { McpServerConfig } from "./server.ts";

export interface McpResource {
  readonly server: string;
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly mimeType?: string;
}

/** A family of resources; the address of each follows from the template (RFC 6570). */
export interface McpResourceTemplate extends Omit<McpResource, "server" | "uri"> {
  readonly uriTemplate: string;
}

export interface McpResourceText {
  readonly text: string;
  /** Parts that are not text, or that exceeded the limits. */
  readonly leftOut: readonly string[];
}

const MAX_PAGES = 20;
const MAX_RESOURCES = 500;
export const MAX_URI_CHARACTERS = 4096;
const MAX_TEXT_CHARACTERS = 1024 * 1024;
const MAX_PARTS = 100;

const page = z.object({
  resources: z.array(z.unknown()).optional(),
  resourceTemplates: z.array(z.unknown()).optional(),
  prompts: z.array(z.unknown()).optional(),
  nextCursor: z.string().max(4096).optional(),
});
const contents = z.object({ contents: z.array(z.unknown()) });

export interface ServerRequest {
  readonly config: McpServerConfig;
  readonly signal: AbortSignal;
}

export async function listResources(client: Client, reading: ServerRequest): Promise<readonly McpResource[]> {
  const { name } = reading.config;
  const found = await allPages(client, { ...reading, method: "resources/list", member: "resources" });
  return found.flatMap((value) => resourceOf(value, name) ?? []);
}

export async function listTemplates(client: Client, reading: ServerRequest): Promise<readonly McpResourceTemplate[]> {
  const from = { ...reading, method: "resources/templates/list", member: "resourceTemplates" } as const;
  return (await allPages(client, from)).flatMap((value) => templateOf(value) ?? []);
}

type PagedRequest = ServerRequest & {
  readonly method: string;
  readonly member: "resources" | "resourceTemplates" | "prompts";
};

export async function allPages(
  client: Client,
  { config, signal, method, member }: PagedRequest,
): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES && found.length < MAX_RESOURCES; pages++) {
    const request = { method, ...(cursor !== undefined && { params: { cursor } }) };
    const answer = await ask({ config, signal }, () =>
      client.request(request, page, { timeout: config.timeoutMs, signal }),
    );
    found.push(...(answer[member] ?? []).slice(0, MAX_RESOURCES - found.length));
    const { nextCursor } = answer;
    if (nextCursor === undefined || nextCursor === cursor) break;
    cursor = nextCursor;
  }
  return found;
}

function templateOf(value: unknown): McpResourceTemplate | undefined {
  const { uriTemplate } = isObject(value) ? value : {};
  if (!isObject(value) || typeof uriTemplate !== "string" || uriTemplate.length > MAX_URI_CHARACTERS) return undefined;
  const { server: _, uri: __, ...described } = resourceOf({ ...value, uri: uriTemplate }, "") ?? {};
  return { name: "", description: "", ...described, uriTemplate: cleanLine(uriTemplate, MAX_URI_CHARACTERS) };
}

function resourceOf(value: unknown, server: string): McpResource | undefined {
  if (!isObject(value) || typeof value.uri !== "string" || value.uri.length > MAX_URI_CHARACTERS) return undefined;
  return {
    server,
    uri: cleanLine(value.uri, MAX_URI_CHARACTERS),
    name: cleanLine(value.title ?? value.name, 200),
    description: cleanLine(value.description, 300),
    ...(typeof value.mimeType === "string" && { mimeType: cleanLine(value.mimeType, 100) }),
  };
}

const content = z.object({
  uri: z.string().max(MAX_URI_CHARACTERS),
  mimeType: z.string().max(200).exactOptional(),
  text: z.string().exactOptional(),
  blob: z.string().exactOptional(),
  _meta: z.record(z.string(), z.unknown()).exactOptional(),
});
export type McpContent = z.infer<typeof content>;

type UriRequest = ServerRequest & { readonly uri: string };

/** Returns the contents; the size of a response is limited elsewhere. */
export async function readContents(client: Client, reading: UriRequest): Promise<readonly McpContent[]> {
  const result = await readParts(client, reading);
  return result.contents.slice(0, MAX_PARTS).flatMap((part) => content.safeParse(part).data ?? []);
}

function readParts(client: Client, { config, uri, signal }: UriRequest) {
  const options = { timeout: config.timeoutMs, signal };
  return ask({ config, signal }, () =>
    client.request({ method: "resources/read", params: { uri } }, contents, options),
  );
}

export async function readResource(client: Client, reading: UriRequest): Promise<McpResourceText> {
  const result = await readParts(client, reading);
  const texts: string[] = [];
  const leftOut: string[] = [];
  let room = MAX_TEXT_CHARACTERS;
  for (const part of result.contents.slice(0, MAX_PARTS)) {
    if (!isObject(part)) continue;
    if (typeof part.text === "string" && room > 0) {
      const text = cleanText(part.text, room);
      texts.push(text);
      room -= text.length;
    } else {
      const size = typeof part.blob === "string" ? `${Math.floor((part.blob.length * 3) / 4)} bytes` : "too much";
      leftOut.push(`${cleanLine(part.mimeType ?? "data", 100)}, ${size}`);
    }
  }
  return { text: texts.join("\n"), leftOut };
}

/** Words failures for readers. */
export async function ask<T>({ config, signal }: ServerRequest, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    const said = cleanLine(cause instanceof Error ? cause.message : String(cause));
    throw new ToolError(`The MCP server ${config.name} gave no valid answer: ${said}`, { cause });
  }
}
