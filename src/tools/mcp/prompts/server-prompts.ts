/** Lists the prompts of a server and has it fill them in, within limits. */
import type { Client } from "@modelcontextprotocol/client";
import * as z from "zod";
import { cleanLine, cleanText } from "../bounds.ts";
import { allPages, ask, type ServerRequest } from "../resource-access.ts";
import { textOf } from "../result.ts";

export interface McpPrompt {
  readonly server: string;
  /** As the server knows it. */
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly McpPromptArgument[];
}

interface McpPromptArgument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
}

const MAX_NAME_CHARACTERS = 200;
const MAX_ARGUMENTS = 50;
const MAX_MESSAGES = 200;
const MAX_TEXT_CHARACTERS = 256 * 1024;

const name = z.string().min(1).max(MAX_NAME_CHARACTERS);
const prompt = z.object({
  name,
  title: z.unknown().optional(),
  description: z.unknown().optional(),
  arguments: z
    .array(z.object({ name, description: z.unknown().optional(), required: z.boolean().optional().catch(undefined) }))
    .max(MAX_ARGUMENTS)
    .optional(),
});

const block = z.looseObject({ type: z.string() });
const filled = z.object({
  messages: z.array(z.object({ role: z.enum(["user", "assistant"]), content: z.union([block, z.array(block)]) })),
});

/** Leaves out prompts that are not valid. */
export async function listPrompts(client: Client, request: ServerRequest): Promise<readonly McpPrompt[]> {
  const found = await allPages(client, { ...request, method: "prompts/list", member: "prompts" });
  return found.flatMap((value) => {
    const { data } = prompt.safeParse(value);
    if (!data) return [];
    return {
      server: request.config.name,
      name: data.name,
      description: cleanLine(data.description ?? data.title),
      arguments: (data.arguments ?? []).map(({ name: argument, description, required = false }) => ({
        name: argument,
        description: cleanLine(description),
        required,
      })),
    };
  });
}

/** Returns the text of a prompt, quoted. Messages of several roles are labelled. */
export async function fillPrompt(
  client: Client,
  { config, signal, name: wanted, values }: FillRequest,
): Promise<string> {
  const request = { method: "prompts/get", params: { name: wanted, arguments: values } };
  const { messages } = await ask({ config, signal }, () =>
    client.request(request, filled, { timeout: config.timeoutMs, signal }),
  );
  const isDialogue = messages.some(({ role }) => role === "assistant");
  const texts = messages
    .slice(0, MAX_MESSAGES)
    .flatMap(({ role, content }) =>
      [content].flat().map((one) => `${isDialogue ? `${role}: ` : ""}${textOf(one as Parameters<typeof textOf>[0])}`),
    );
  return cleanText(texts.join("\n\n"), MAX_TEXT_CHARACTERS);
}

type FillRequest = ServerRequest & { readonly name: string; readonly values: Readonly<Record<string, string>> };
