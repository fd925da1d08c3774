/** Options of a session that have no effect here. Clients that set one receive a warning with an alternative. */
import * as z from "zod";
import { isObject } from "../../lib/json.ts";
import { sanitise } from "../../lib/text.ts";
import type { Session } from "../../session/session.ts";

interface UnusedOption {
  readonly schema: () => z.ZodType;
  /** True if the value requests something that this server does not do. */
  isMissed(value: unknown): boolean;
  warning(value: unknown): string;
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;
const isTrue = (value: unknown): boolean => value === true;
const isOther =
  (...same: unknown[]) =>
  (value: unknown): boolean =>
    isSet(value) && !same.includes(value);
const isFilled = (value: unknown): boolean => isSet(value) && !["{}", "[]", '""'].includes(JSON.stringify(value));
const flag = (): z.ZodType => z.boolean().nullish();
const word = (): z.ZodType => z.string().nullish();
const anything = (): z.ZodType => z.unknown().optional();
const says = (text: string) => (): string => text;

/** Options that request the only behaviour of this server, or that are for services that it does not use. */
const granted: Readonly<Record<string, (value: unknown) => boolean>> = {
  customAgentsLocalOnly: () => true,
  enableFileChangeTracking: () => true,
  skipEmbeddingRetrieval: () => true,
  refreshCustomInstructions: () => true,
  billable: () => true,
  envValueMode: (value) => value === "direct",
  // The host's own, which nothing interprets.
  "tools.metadata": () => true,
};

const unusedOptions = {
  configDir: {
    schema: word,
    isMissed: isSet,
    warning: (folder) =>
      `configDir is not used: settings and state of all sessions of this server are in one folder, so that the user's own rules apply to each of them. Start the server with COPILOT_HOME=${folder} (the SDK's baseDirectory) for another one.`,
  },
  contextTier: {
    schema: word,
    isMissed: isOther("default"),
    warning: (tier) =>
      `contextTier '${tier}' is not used: a model has the context window that its provider reports. Set a larger one with modelCapabilities.limits.max_context_window_tokens, or choose another model.`,
  },
  featureFlags: {
    schema: anything,
    isMissed: isFilled,
    warning: says("featureFlags are not used: switch features with the flags of troupe's own settings."),
  },
  expAssignments: {
    schema: anything,
    isMissed: isFilled,
    warning: says("expAssignments are not used: no experiments run here."),
  },
  isExperimentalMode: {
    schema: flag,
    isMissed: isTrue,
    warning: says("enableExperimentalMode is not used: switch features with the flags of troupe's own settings."),
  },
  authClientIdMetadataUrl: {
    schema: word,
    isMissed: isSet,
    warning: says("authClientIdMetadataUrl is not used: sign-in to MCP servers registers its own client."),
  },
  toolFilterPrecedence: {
    schema: word,
    isMissed: isOther("excluded"),
    warning: says("toolFilterPrecedence is not used: an excluded tool is always excluded."),
  },
  remoteSession: {
    schema: anything,
    isMissed: isOther("off", false),
    warning: says("remoteSession is not used: sessions of this server are local."),
  },
  coauthorEnabled: {
    schema: flag,
    isMissed: isTrue,
    warning: says("coauthorEnabled is not used: ask for the trailer in your instructions."),
  },
  autoTier: {
    schema: word,
    isMissed: isSet,
    warning: says("autoTier is not used: this server does not route models. Name the model you want."),
  },
  verbosity: {
    schema: word,
    isMissed: isSet,
    warning: says("verbosity is not used: say in systemMessage how long answers should be."),
  },
  mcpOAuthTokenStorage: {
    schema: word,
    isMissed: isOther("in-memory"),
    warning: says("mcpOAuthTokenStorage is not used: tokens of clients are stored in memory only."),
  },
  embeddingCacheStorage: {
    schema: word,
    isMissed: isOther("in-memory"),
    warning: says("embeddingCacheStorage is not used: this server computes no embeddings."),
  },
  diagnostics: {
    schema: anything,
    isMissed: isSet,
    warning: says("diagnostics are not used: read the status and errors of MCP servers with session.mcp.list."),
  },
  sandboxConfig: {
    schema: anything,
    isMissed: isSet,
    warning: says("sandboxConfig is not used: the sandbox is set in troupe's own settings."),
  },
} as const satisfies Record<string, UnusedOption>;

export const unusedParams = (): { readonly [K in keyof typeof unusedOptions]: z.ZodOptional<z.ZodType> } =>
  Object.fromEntries(Object.entries(unusedOptions).map(([name, { schema }]) => [name, schema().optional()])) as never;

/**
 * Emits one `session.warning` for each option that was set and has no effect. Call it wherever options are accepted.
 */
export function warnWithoutEffect(session: Pick<Session, "record">, params: Readonly<Record<string, unknown>>): void {
  const capi = params.capi as { autoTier?: unknown } | undefined;
  const given = { ...params, autoTier: params.autoTier ?? capi?.autoTier };
  for (const [name, { isMissed, warning }] of Object.entries<UnusedOption>(unusedOptions)) {
    const value = Reflect.get(given, name);
    if (isMissed(value)) session.record.warn("options", warning(value));
  }
}

/** Methods whose parameters are options. Unknown parameters of other methods are for the records of the caller. */
const configuring = new Set([
  "session.create",
  "session.resume",
  "session.options.update",
  "session.send",
  "session.sendMessages",
  "session.permissions.configure",
  "session.mode.set",
  "session.model.switchTo",
  "session.history.compact",
  "session.fleet.start",
]);
const MAX_NAMES = 50;

interface UnknownOptions {
  /** The method that was called. */
  readonly name: string;
  unknown(): Readonly<Record<string, unknown>>;
  find(sessionId: string): Pick<Session, "record"> | undefined;
}

/** Emits one `session.warning` that names the options of a call that this version does not know. */
export function warnUnknown({ name, unknown, find }: UnknownOptions, params: unknown, result: unknown): void {
  if (!configuring.has(name)) return;
  const requested = Object.entries(unknown())
    .filter(([option, value]) => isFilled(value) && value !== false && !granted[option]?.(value))
    .map(([option]) => sanitise(option).slice(0, 100));
  const sessionId = [params, result].map((part) => (isObject(part) ? part.sessionId : undefined)).find(isSet);
  if (requested.length === 0 || typeof sessionId !== "string") return;
  const names = requested.slice(0, MAX_NAMES).join(", ");
  find(sessionId)?.record.warn(
    "options",
    `${name}: these options have no effect, because this version of troupe does not know them: ${names}.`,
  );
}
