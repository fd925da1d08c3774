/** The schema of `providers.json`. In its own file so that it is only loaded if the user has such a file. */
import * as z from "zod";
import { isAddress } from "../is-address.ts";
import { splitCommand } from "../key.ts";

const tokens = z.number().int().positive();
const seconds = z.number().min(1).max(86_400);
const dollars = z.number().nonnegative();

const flatPrice = {
  input: dollars,
  output: dollars,
  cacheRead: dollars.exactOptional(),
  cacheWrite: dollars.exactOptional(),
  webSearch: dollars.exactOptional(),
};
export const Price = z.strictObject({
  ...flatPrice,
  upToInputTokens: tokens.exactOptional(),
  beyond: z.strictObject(flatPrice).exactOptional(),
});

export const modelFields = {
  displayName: z.string().min(1).exactOptional(),
  wireModel: z.string().min(1).exactOptional(),
  contextWindow: tokens.exactOptional(),
  maxOutputTokens: tokens.exactOptional(),
  price: Price.nullable().exactOptional(),
};

const address = z
  .string()
  .refine(isAddress, "must be an address such as https://host/v1, without a user name or password");
const word = z.string().trim().min(1);

export const Provider = z.strictObject({
  name: word.exactOptional(),
  type: z.enum(["openai", "azure", "anthropic"]).exactOptional(),
  wireApi: z.enum(["completions", "responses", "anthropic"]).exactOptional(),
  baseUrl: address.exactOptional(),
  auth: z.enum(["bearer", "x-api-key", "api-key", "x-goog-api-key", "none"]).exactOptional(),
  apiKey: word.exactOptional(),
  apiKeyVariable: word.exactOptional(),
  apiKeyCommand: z.union([word.transform(splitCommand), z.array(word).min(1)]).exactOptional(),
  bearerToken: word.exactOptional(),
  apiVersion: word.exactOptional(),
  headers: z.record(z.string(), z.string()).exactOptional(),
  defaultModel: word.exactOptional(),
  maxConcurrency: z.number().int().positive().exactOptional(),
  streamUsage: z.boolean().exactOptional(),
  webSearch: z.boolean().exactOptional(),
  timeouts: z
    .strictObject({
      firstAnswerSeconds: seconds.exactOptional(),
      silenceSeconds: seconds.exactOptional(),
      totalSeconds: seconds.exactOptional(),
    })
    .exactOptional(),
  npm: z
    .string()
    .regex(/^(?:@[\w.~-]+\/)?\w[\w.~-]*$/, "must be the name of a package, such as @ai-sdk/xai")
    .exactOptional(),
  options: z.record(z.string(), z.json()).exactOptional(),
  models: z.record(word, z.strictObject(modelFields)).exactOptional(),
});

export const File = z.strictObject({
  $schema: z.string().exactOptional(),
  providers: z.record(z.string(), Provider).default({}),
  models: z.record(word, z.strictObject({ provider: word, ...modelFields })).default({}),
  defaultModel: word.exactOptional(),
});

export type ProviderEntry = z.infer<typeof Provider>;
export type ModelEntry = z.infer<typeof File>["models"][string] | z.infer<z.ZodObject<typeof modelFields>>;
