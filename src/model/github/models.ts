import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { KnownModel, WireApi } from "../providers/definition.ts";

const positive = z.number().positive().optional().catch(undefined);

const Model = z.object({
  id: z.string().min(1),
  name: z.string().optional(),
  is_chat_default: z.boolean().optional().catch(undefined),
  model_picker_enabled: z.boolean().optional().catch(undefined),
  supported_endpoints: z.array(z.string()).optional().catch(undefined),
  policy: z.object({ state: z.string().optional(), terms: z.string().optional() }).optional().catch(undefined),
  billing: z.object({ multiplier: z.number().optional() }).optional().catch(undefined),
  capabilities: z
    .object({
      type: z.string().optional(),
      supports: z
        .object({ vision: z.boolean().optional(), reasoning_effort: z.array(z.string()).optional() })
        .optional(),
      limits: z
        .object({ max_context_window_tokens: positive, max_output_tokens: positive, max_prompt_tokens: positive })
        .optional(),
    })
    .optional()
    .catch(undefined),
});

/** A model as described in GitHub's list. */
export type GithubModel = z.infer<typeof Model>;

const MAX_MODELS = 1_000;

/** Returns the usable models of a list, or `undefined` if it is not a list. */
export function readModels(answer: unknown): readonly GithubModel[] | undefined {
  const list = z.object({ data: z.array(z.unknown()) }).safeParse(answer);
  if (!list.success) return undefined;
  return list.data.data.slice(0, MAX_MODELS).flatMap((entry) => {
    const model = Model.safeParse(entry);
    const isChat = model.success && (model.data.capabilities?.type ?? "chat") === "chat";
    return isChat ? [model.data] : [];
  });
}

/** Returns the default model. */
export function defaultOf(models: readonly GithubModel[]): string | undefined {
  const offered = models.filter(({ model_picker_enabled: isOffered }) => isOffered !== false);
  return (offered.find((model) => model.is_chat_default) ?? offered[0] ?? models[0])?.id;
}

export function knownModel({ id, name, capabilities, supported_endpoints: endpoints }: GithubModel): KnownModel {
  const { supports = {}, limits = {} } = capabilities ?? {};
  const { max_context_window_tokens: whole, max_prompt_tokens: prompt, max_output_tokens: output } = limits;
  const window = whole ?? (prompt && prompt + (output ?? 0));
  const wire = wireOf(endpoints);
  return {
    name: id,
    id,
    price: null,
    ...defined({ displayName: name, contextWindow: window, maxOutputTokens: output, vision: supports.vision, wire }),
    ...(endpoints?.includes(RESPONSES_SOCKET) && { sockets: true }),
  };
}

/** The endpoint name of models that support WebSockets. */
const RESPONSES_SOCKET = "ws:/responses";

const paths: readonly (readonly [string, WireApi])[] = [
  ["/chat/completions", "completions"],
  ["/responses", "responses"],
  ["/v1/messages", "anthropic"],
  [RESPONSES_SOCKET, "responses"],
];

/** Returns the wire if the model names one; most do not. */
function wireOf(endpoints: readonly string[] = []): WireApi | undefined {
  return paths.find(([path]) => endpoints.includes(path))?.[1];
}
