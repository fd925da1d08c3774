/** The parts of an editor's messages that are read. Other fields are ignored. */
import * as z from "zod";

const KeyValue = z.object({ name: z.string(), value: z.string() });

const ServerEntry = z.union(
  [
    z.object({
      type: z.enum(["http", "sse"]),
      name: z.string(),
      url: z.string(),
      headers: z.array(KeyValue).default([]),
    }),
    z.object({
      name: z.string(),
      command: z.string(),
      args: z.array(z.string()).default([]),
      env: z.array(KeyValue).default([]),
    }),
  ],
  { error: "An MCP server needs a name and a command, or a name, a type (http or sse) and a url." },
);
export type ServerEntry = z.infer<typeof ServerEntry>;

const mimeType = z.string().nullish();
const Resource = z.union(
  [z.object({ uri: z.string(), text: z.string() }), z.object({ uri: z.string(), blob: z.string(), mimeType })],
  { error: "A resource needs a uri, and a text or a blob." },
);

const PromptBlock = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text"), text: z.string() }),
    z.object({ type: z.literal("image"), data: z.string(), mimeType: z.string() }),
    z.object({ type: z.literal("audio"), mimeType: z.string() }),
    z.object({ type: z.literal("resource_link"), uri: z.string(), name: z.string() }),
    z.object({ type: z.literal("resource"), resource: Resource }),
  ],
  { error: "This block cannot be read. Send text, image, resource or resource_link blocks." },
);
export type PromptBlock = z.infer<typeof PromptBlock>;

/** The capabilities of an editor; a malformed entry counts as absent. */
const Ability = z.looseObject({}).nullish().catch(undefined);
const ClientCapabilities = z
  .looseObject({
    elicitation: z.looseObject({ form: Ability, url: Ability }).nullish().catch(undefined),
    session: z.looseObject({ notices: Ability, compaction: Ability }).nullish().catch(undefined),
    subagents: Ability,
    fs: z
      .looseObject({ readTextFile: z.unknown().optional(), writeTextFile: z.unknown().optional() })
      .nullish()
      .catch(undefined),
    auth: z.looseObject({ terminal: z.unknown().optional() }).nullish().catch(undefined),
    _meta: z
      .looseObject({ terminal_output: z.unknown().optional(), "terminal-auth": z.unknown().optional() })
      .nullish()
      .catch(undefined),
  })
  .nullish()
  .catch(undefined);
const Initialize = z.looseObject({ protocolVersion: z.number(), clientCapabilities: ClientCapabilities });
export type InitializeParams = z.infer<typeof Initialize>;

export const initializeParams = () => Initialize;
export const authParams = () => z.looseObject({ methodId: z.string() });
export const sessionParams = () => z.looseObject({ sessionId: z.string() });
export const newParams = () =>
  z.looseObject({
    cwd: z.string(),
    mcpServers: z.array(ServerEntry).default([]),
    additionalDirectories: z.array(z.string()).nullish(),
  });
export const loadParams = () => newParams().extend({ sessionId: z.string() });
export const listParams = () => z.looseObject({ cwd: z.string().nullish(), cursor: z.string().nullish() }).default({});
export const promptParams = () => sessionParams().extend({ prompt: z.array(PromptBlock).min(1) });
export const modeParams = () => sessionParams().extend({ modeId: z.string() });
export const configParams = () => sessionParams().extend({ configId: z.string(), value: z.unknown() });

/** The working directory of a session, and the MCP servers that the editor provides. */
export type NewSessionParams = z.infer<ReturnType<typeof newParams>>;
