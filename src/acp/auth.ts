import type { AuthMethod } from "@agentclientprotocol/sdk";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { Client } from "../sdk/client.ts";
import { authRequired } from "./errors.ts";

const HOW =
  "Set the key in the environment of the agent, for example ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or write " +
  "providers.json, and start the agent again.";

/** troupe has no sign-in of its own: it uses keys that the user has configured. */
export const authMethods: AuthMethod[] = [{ id: "provider-key", name: "Key of a model provider", description: HOW }];

/** Resolves if a provider accepts its key. The understudy needs no key, and does not count. */
export async function authenticate(client: Client, methodId: string): Promise<void> {
  if (!authMethods.some(({ id }) => id === methodId))
    throw new RpcError(rpcCodes.invalidParams, `There is no sign-in method "${methodId}".`);
  const { models } = await client.rpc.models.list();
  if (models.some(({ id }) => id !== "understudy")) return;
  throw authRequired(`No model provider has a working key. ${HOW} "troupe models" shows what is missing.`);
}
