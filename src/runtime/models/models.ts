/**
 * Resolves and lists models, for the process and for each session. This folder chooses the models of sessions and
 * agents, and holds their GitHub identity.
 */

import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { type ResolvedModel, resolveModel } from "../../model/catalog.ts";
import type { CatalogDependencies } from "../../model/connect.ts";
import type { GivenProviders } from "../../model/given-providers.ts";
import { Limiter } from "../../model/limiter.ts";
import type { ModelRow } from "../../model/list-models.ts";
import { costOf } from "../../model/prices.ts";
import { withRetry } from "../../model/retry.ts";
import { type ModelSettings, readSettings, registryPath, type TextFile } from "../../model/settings/settings.ts";
import { type SharedBudget, withSharedBudget } from "../../model/shared-budget.ts";
import type { SharedLimits } from "../../model/shared-limits.ts";
import type { ModelFetch } from "../../model/wire/endpoint.ts";
import { RefusedParameters } from "../../model/wire/optional-parameters.ts";
import type { OpenSocket } from "../../model/wire/transport/socket.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionModel } from "../../session/session-model.ts";
import type { SessionIdentity } from "./identity.ts";
import type { ProviderKeys } from "./provider-keys.ts";

export interface Models {
  /** Returns the named model, ready to use; without a name, the configured one. */
  resolve(wanted?: string): Promise<NamedModel>;
  list(): Promise<readonly ModelRow[]>;
  /** Returns whether the provider exists. Without it, its models are unavailable. */
  hasProvider(id: string): Promise<boolean>;
  /** Returns whether the provider exists, but has no key. */
  lacksKey(id: string): Promise<boolean>;
  /** Returns the models of one session, which may have its own providers, name and network. Makes no requests. */
  forSession(own: OwnModels): Models;
  /** Increases each time the user's configuration is read again. Models resolved before may have an old key. */
  generation(): number;
}

/** The models of the process, and the keys of its providers. */
export interface ProcessModels extends Models {
  keys(): Promise<ProviderKeys>;
}

export type NamedModel = SessionModel & { readonly label: string };

/** A session's own providers, network and identity. */
export interface OwnModels extends GivenProviders {
  /** The model requested at the start. */
  readonly model?: string | undefined;
  /** The client program; reported to providers in addition to troupe. */
  readonly clientName?: string | undefined;
  /** Replaces network access for this session's models. */
  readonly fetch?: ModelFetch | undefined;
  /** Opens WebSockets in the same way. */
  readonly openSocket?: OpenSocket | undefined;
  /** False: GitHub models are not used over WebSockets. */
  readonly githubSockets?: boolean | undefined;
  /** The GitHub identity, if any. Its models are added to the session's. */
  readonly identity?: Pick<SessionIdentity, "settingsWith"> | undefined;
  /** Pays every call of the session's models. */
  readonly sharedBudget?: SharedBudget | undefined;
}

const FAUX = "faux:";

const providersPath = (stateRoot: string): string => join(stateRoot, "providers.json");

interface ModelsOptions {
  environment: Readonly<Record<string, string | undefined>>;
  stateRoot: string;
  stamp: Stamp;
  userAgent?: string;
  importModule?: ((specifier: string) => Promise<unknown>) | undefined;
  onKey?: (key: string, providerId: string) => void;
  /** Limits that other processes share. They apply to the configured keys, not to keys that a session brings. */
  sharedLimits?: SharedLimits | undefined;
}

/**
 * Reads the user's configuration on first use and when it has changed. Keeps one limiter per provider and model for all
 * callers.
 */
export function models(options: ModelsOptions): ProcessModels {
  const { environment, stateRoot, stamp, userAgent, importModule, onKey, sharedLimits } = options;
  const dependencies = {
    stamp,
    packagesFolder: stateRoot,
    refused: new RefusedParameters(),
    connections: {},
    ...defined({ userAgent, importModule, onKey }),
  };
  let settings: Promise<ModelSettings> | undefined;
  let version = versionOf(providersPath(stateRoot));
  let generation = 0;
  /** Notices changes of the user's file, which this or another process has made. */
  const currentGeneration = (): number => {
    const now = versionOf(providersPath(stateRoot));
    if (now === version) return generation;
    version = now;
    settings = undefined;
    return ++generation;
  };
  const known = (): Promise<ModelSettings> => {
    currentGeneration();
    settings ??= loadSettings(environment, stateRoot);
    return settings;
  };
  const keys = async (): Promise<ProviderKeys> => {
    const { providerKeys } = await import("./provider-keys.ts");
    return providerKeys({
      file: providersPath(stateRoot),
      settings: known,
      settingsWith: (providersFile) => loadSettings(environment, stateRoot, providersFile),
      dependencies,
    });
  };
  const ofProcess = withRetryAndLimit(stamp, sharedLimits);
  const modelsOf = (source: ModelSource): Models => ({
    async resolve(wanted) {
      if (wanted?.startsWith(FAUX)) return paid(await faux(wanted.slice(FAUX.length)), source.sharedBudget);
      const settings = await settingsOrWhy(source);
      if (settings instanceof TroupeError) return absentNamedModel(settings, wanted);
      if (wanted === undefined && source.isNameless) return nameless();
      return paid(
        source.withRetryAndLimit(await resolveModel(settings, wanted, source.dependencies)),
        source.sharedBudget,
      );
    },
    async list() {
      const { listModels } = await import("../../model/list-models.ts");
      return listModels(await source.settings(), source.dependencies);
    },
    hasProvider: async (id) => (await source.settings()).providers.some((provider) => provider.id === id),
    lacksKey: async (id) =>
      (await source.settings()).providers.some((provider) => provider.id === id && provider.missing !== undefined),
    forSession: (own) => modelsOf(ownSource(own, source, stamp)),
    generation: currentGeneration,
  });
  return { ...modelsOf({ settings: known, dependencies, withRetryAndLimit: ofProcess }), keys };
}

/** A source of models, and how to reach them. */
interface ModelSource {
  settings(): Promise<ModelSettings>;
  readonly dependencies: CatalogDependencies;
  /** There is a provider, but no model is named. */
  readonly isNameless?: boolean;
  withRetryAndLimit(model: ResolvedModel): NamedModel;
  readonly sharedBudget?: SharedBudget | undefined;
}

const paid = (model: NamedModel, budget: SharedBudget | undefined): NamedModel =>
  budget ? { ...model, provider: withSharedBudget(model.provider, budget, model.costOf) } : model;

function ownSource(own: OwnModels, source: ModelSource, stamp: Stamp): ModelSource {
  const { clientName, fetch, openSocket, model } = own;
  const { provider, providers, models: given, identity } = own;
  const brings = [provider, providers, given, identity].some((part) => part !== undefined);
  const introduction = clientName === undefined ? "" : headerText(clientName);
  if (!brings && !fetch && introduction === "")
    return own.sharedBudget ? { ...source, sharedBudget: own.sharedBudget } : source;
  let settings: Promise<ModelSettings> | undefined;
  return {
    settings() {
      if (!brings) return source.settings();
      settings ??= settingsOf(own, source, model);
      settings.catch(() => {
        settings = undefined;
      });
      return settings;
    },
    dependencies: {
      ...source.dependencies,
      ...(introduction !== "" && { userAgent: `${introduction} ${source.dependencies.userAgent ?? ""}`.trim() }),
      ...defined({ fetch, openSocket }),
    },
    isNameless: own.provider !== undefined && model === undefined && own.provider.modelId === undefined,
    // Rate limits and failures are tracked per session, because it has its own keys or network.
    withRetryAndLimit: brings || fetch ? withRetryAndLimit(stamp) : source.withRetryAndLimit,
    sharedBudget: own.sharedBudget,
  };
}

async function settingsOf(own: OwnModels, source: ModelSource, model: string | undefined): Promise<ModelSettings> {
  const configured = await source.settings();
  // With one provider for everything, GitHub's models are not needed.
  const carrying = { fetch: own.fetch, sockets: own.githubSockets };
  const known = own.provider ? configured : ((await own.identity?.settingsWith(configured, carrying)) ?? configured);
  const { settingsWith } = await import("../../model/given-providers.ts");
  return settingsWith(known, own, model);
}

/** Removes characters that are invalid in a header, and limits the length. */
const headerText = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]+/g, "")
    .trim()
    .slice(0, 200);

/** Adds retries, and one limiter per model. */
function withRetryAndLimit(stamp: Stamp, sharedLimits?: SharedLimits): (model: ResolvedModel) => NamedModel {
  const limiters = new Map<string, Limiter>();
  return ({ provider, providerId, price, maxConcurrency, ...rest }) => {
    const key = `${providerId}/${rest.model}`;
    const shared = sharedLimits?.of(providerId, rest.model);
    const limiter = limiters.get(key) ?? new Limiter({ stamp, ...defined({ maxConcurrency, shared }) });
    limiters.set(key, limiter);
    return {
      ...rest,
      providerId,
      provider: withRetry(provider, { stamp, limiter }),
      costOf: (usage) => costOf(usage, price),
    };
  };
}

/** Returns temporary provider errors, so that the session can open. The next message tries again. */
async function settingsOrWhy(source: ModelSource): Promise<ModelSettings | TroupeError> {
  try {
    return await source.settings();
  } catch (cause) {
    if (cause instanceof TroupeError && cause.kind === "provider") return cause;
    throw cause;
  }
}

async function absentNamedModel(why: TroupeError, wanted: string | undefined): Promise<NamedModel> {
  const { absentModel } = await import("../../model/given-providers.ts");
  const label = wanted ?? "a model not known yet";
  return { ...absentModel(why, wanted), label, absent: { why: why.message, wanted }, costOf: () => null };
}

/** Returns a placeholder: a session may open before its model is known, but needs one to answer. */
async function nameless(): Promise<NamedModel> {
  const { namelessModel } = await import("../../model/given-providers.ts");
  return { ...namelessModel(), label: "no model", costOf: () => null };
}

/** A scripted model, which plays its steps including failures. */
async function faux(script: string): Promise<NamedModel> {
  if (script === "") throw new TroupeError("usage", "--model faux: needs the path of a script: faux:script.json.");
  const { readFauxModel } = await import("../../model/faux/faux-script.ts");
  const provider = await readFauxModel(resolve(script));
  return { provider, providerId: "faux", model: "faux", label: `faux (${script})`, costOf: () => 0 };
}

async function loadSettings(
  environment: Readonly<Record<string, string | undefined>>,
  stateRoot: string,
  changed?: TextFile,
): Promise<ModelSettings> {
  const providersFile = changed ?? (await readIfThere(providersPath(stateRoot)));
  const registry = registryPath(environment);
  const registryFile = registry === undefined ? undefined : await readRequired(registry, "COPILOT_PROVIDERS_CONFIG");
  return readSettings({ environment, ...defined({ providersFile, registryFile }) });
}

/** Returns a text that differs after every change of the file. */
function versionOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? "" : `${found.ino} ${found.size} ${found.mtimeMs}`;
}

async function readIfThere(path: string): Promise<TextFile | undefined> {
  try {
    return { path, text: await readFile(path, "utf8") };
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw unreadable(path, cause);
  }
}

async function readRequired(path: string, variable: string): Promise<TextFile> {
  const absolute = isAbsolute(path) ? path : resolve(path);
  const file = await readIfThere(absolute);
  if (!file) throw new TroupeError("configuration", `${variable} names ${absolute}, which does not exist.`);
  return file;
}

function unreadable(path: string, cause: unknown): TroupeError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new TroupeError("configuration", `Cannot read ${path}: ${reason}.`, { cause });
}
