/** The format of `mcp-tools.json`, and reading it when it may be damaged. */
import * as z from "zod";
import { parseJson } from "../../../lib/json.ts";
import { readSmallFile } from "../../../lib/node/small-file.ts";
import type { McpToolDefinition } from "../server.ts";

/** As stored: `server` is not repeated. */
const Definition = z.object({
  name: z.string(),
  title: z.string().exactOptional(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
  outputSchema: z.record(z.string(), z.unknown()).exactOptional(),
  annotations: z.record(z.string(), z.unknown()).exactOptional(),
  taskSupport: z.enum(["optional", "required"]).exactOptional(),
  ui: z
    .object({
      resourceUri: z.string().exactOptional(),
      visibility: z.array(z.enum(["model", "app"])).exactOptional(),
    })
    .exactOptional(),
});

const Server = z.object({
  /** By tool name: the approved definition and its hash. */
  approved: z.array(z.object({ hash: z.string(), definition: Definition })),
  /** The last listing of the server, approved or not. */
  listed: z.array(Definition).exactOptional(),
  /** Time of the last ignored version probe, in milliseconds since 1970. */
  probeIgnoredAt: z.number().exactOptional(),
});

const PinsFile = z.object({ version: z.literal(1), servers: z.record(z.string(), Server) });

export type PinsFile = z.infer<typeof PinsFile>;
export type PinnedServer = z.infer<typeof Server>;
export type KeptDefinition = z.infer<typeof Definition>;

export const PINS_FILE = "mcp-tools.json";
const MAX_FILE_BYTES = 64 * 1024 * 1024;

export type ReadPins =
  | { readonly kind: "pins"; readonly pins: PinsFile }
  | { readonly kind: "missing" }
  | { readonly kind: "damaged"; readonly reason: string };

export function readPins(path: string): ReadPins {
  const file = readSmallFile(path, { maxBytes: MAX_FILE_BYTES });
  if (file.kind === "missing") return file;
  if (file.kind === "refused") return { kind: "damaged", reason: file.reason };
  const json = parseJson(file.text);
  if (!json.ok) return { kind: "damaged", reason: "is not JSON" };
  const parsed = PinsFile.safeParse(json.value);
  if (parsed.success) return { kind: "pins", pins: parsed.data };
  return { kind: "damaged", reason: `is not as expected at ${parsed.error.issues[0]?.path.join(".") ?? "its start"}` };
}

export const noPins = (): PinsFile => ({ version: 1, servers: {} });

export function keptDefinition({ server: _, ...definition }: McpToolDefinition): KeptDefinition {
  // A JSON round trip, so that the stored value equals the one read later.
  return JSON.parse(JSON.stringify(definition));
}

export function definitionOf(server: string, definition: KeptDefinition): McpToolDefinition {
  return { server, ...definition };
}
