/**
 * Signing in from an editor. troupe has no account: to sign in means to store the key of a model provider. No form of the
 * editor asks for a key, because the protocol keeps forms for what is not secret.
 */
import { randomUUID } from "node:crypto";
import type { AuthMethod } from "@agentclientprotocol/sdk";
import type { AuthStatusResponse } from "@agentclientprotocol/sdk/unstable";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { Peer } from "../protocol/rpc/peer.ts";
import type { Client } from "../sdk/client.ts";
import type { Abilities } from "./abilities.ts";
import { authRequired } from "./errors.ts";
import { openKeyPage } from "./key-page.ts";

const KEY = "provider-key";
const TERMINAL = "provider-key-terminal";
const UNDERSTUDY = "understudy";

const HOW =
  "Run `troupe login` in a terminal, or set the key in the environment of the agent, for example ANTHROPIC_API_KEY, " +
  "OPENAI_API_KEY or GEMINI_API_KEY.";

/** The words after the agent's own command line that make it ask for a key in a terminal. */
const LOGIN_ARGS = ["login"];

/** Returns the ways to sign in that this editor can use. */
export function authMethods(abilities: Abilities, program: readonly string[] | undefined): AuthMethod[] {
  const key: AuthMethod = {
    id: KEY,
    name: "Key of a model provider",
    description: abilities.addresses ? "Opens a page on this machine where you enter a key." : HOW,
  };
  const terminal = {
    id: TERMINAL,
    name: "Key of a model provider, in a terminal",
    description: "Runs `troupe login`.",
  };
  const [command, ...args] = program ?? [];
  if (abilities.terminalSignIn) return [key, { type: "terminal", ...terminal, args: LOGIN_ARGS, env: {} }];
  if (!abilities.terminalSignInMeta || command === undefined) return [key];
  const launch = { command, args: [...args, ...LOGIN_ARGS], label: "troupe login" };
  return [key, { ...terminal, _meta: { "terminal-auth": launch } }];
}

export interface EditorSignInParts {
  readonly client: Client;
  readonly peer: Peer;
  readonly abilities: Abilities;
}

/**
 * Resolves when a provider has a working key. If none has one, the user enters it on a page that the editor opens.
 * `isRefused` says that a provider refused its key since the last sign-in: then the user is always asked.
 */
export async function authenticate(
  parts: EditorSignInParts,
  request: {
    readonly methodId: string;
    readonly requestId: string | number;
    readonly signal: AbortSignal;
    readonly isRefused: boolean;
  },
): Promise<string | undefined> {
  const { methodId, requestId, signal, isRefused } = request;
  if (methodId !== KEY && methodId !== TERMINAL)
    throw new RpcError(rpcCodes.invalidParams, `There is no sign-in method "${methodId}".`);
  const isByPage = methodId === KEY && parts.abilities.addresses;
  if (!(isRefused && isByPage) && (await hasModel(parts.client))) return undefined;
  if (!isByPage)
    throw authRequired(`No model provider has a working key. ${HOW} "troupe models" shows what is missing.`);
  return enterKey(parts, { scope: { requestId }, signal });
}

export interface KeyRequest {
  /** The request or the session that the page belongs to. */
  readonly scope: { readonly requestId: string | number } | { readonly sessionId: string };
  readonly signal: AbortSignal;
  /** Called with the address if the editor cannot open pages. */
  show?(url: string): void;
}

/** Lets the user enter a key on a page of this machine; resolves with the model that answered with it. */
export async function enterKey(parts: EditorSignInParts, { scope, signal, show }: KeyRequest): Promise<string> {
  const { client, peer, abilities } = parts;
  const { providers } = await client.rpc.providerKeys.list();
  const page = await openKeyPage({
    providers,
    async store(provider, apiKey, signal) {
      const { model } = await client.rpc.providerKeys.set({ provider, apiKey }, { signal });
      return model;
    },
  });
  const stop = (): void => page.close(new Error("The sign-in was cancelled."));
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (abilities.addresses) await openInEditor(peer, { ...scope, url: page.url, signal, stored: page.stored });
    else show?.(page.url);
    return await page.stored;
  } catch (error) {
    throw error instanceof RpcError ? error : authRequired(error instanceof Error ? error.message : String(error));
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

async function openInEditor(
  peer: Peer,
  { url, signal, stored, ...scope }: { url: string; signal: AbortSignal; stored: Promise<string> },
): Promise<void> {
  const elicitationId = randomUUID();
  const message = "Enter the key of a model provider on a page of this machine. troupe tests it and stores it.";
  const asked = { ...scope, mode: "url", url, elicitationId, message };
  const answered = peer.ask("elicitation/create", asked, { signal });
  const notify = (): void => peer.notify("elicitation/complete", { elicitationId });
  // An editor may answer only when the user closes its dialog, which may be after the key was stored.
  const answer = await Promise.race([answered, stored.then(() => ({ action: "accept" }))]);
  answered.catch(() => undefined);
  const { action } = answer as { readonly action?: unknown };
  if (action !== "accept") throw new Error("The sign-in was cancelled.");
  stored.then(notify, notify);
}

/**
 * Removes the keys that were stored by a sign-in. Throws if a provider still has a key, because the editor would still be
 * signed in.
 */
export async function logout(client: Client): Promise<void> {
  const { remaining } = await client.rpc.providerKeys.clear();
  if (remaining.length === 0) return;
  const names = remaining.map(({ name }) => name).join(", ");
  throw new RpcError(
    rpcCodes.internalError,
    `The stored keys are removed, but the environment of the agent, or a command in providers.json, still gives a key for: ${names}. ` +
      "Remove it there and start the agent again.",
  );
}

/** Returns what the draft method `auth/status` reports. */
export async function authStatus(client: Client): Promise<AuthStatusResponse> {
  const [isReady, { providers }] = await Promise.all([hasModel(client), client.rpc.providerKeys.list()]);
  const accounts = providers.filter(({ hasKey }) => hasKey).map(({ name }) => ({ label: `Key of ${name}` }));
  return { state: isReady ? "authenticated" : "unauthenticated", accounts };
}

/** Returns whether a provider accepts its key. The understudy needs none, and does not count. */
async function hasModel(client: Client): Promise<boolean> {
  const { models } = await client.rpc.models.list();
  return models.some(({ id }) => id !== UNDERSTUDY);
}
