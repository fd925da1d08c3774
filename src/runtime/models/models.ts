import { readFile } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import type { Stamp } from "../../lib/stamp.ts";
import { type ResolvedModel, resolveModel } from "../../model/catalog.ts";
import type { CatalogDependencies } from "../../model/connect.ts";
import type { GivenProviders } from "../../model/given-providers.ts";
import { Limiter } from "../../model/limiter.ts";
import type { ModelRow } from "../../model/list-models.ts";
import { costOf } from "../../model/prices.ts";
import { withRetry } from "../../model/retry.ts";
import { readSettings, registryPath, type Settings, type TextFile } from "../../model/settings/settings.ts";
import { RefusedParameters } from "../../model/wire/optional-parameters.ts";
import type { ModelFetch } from "../../model/wire/place.ts";
import type { OpenSocket } from "../../model/wire/transport/socket.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionModel } from "../../session/session-model.ts";
import type { SessionIdentity } from "./identity.ts";

export interface Models {
  /** The model a person means, ready to be spoken to; without a name, whatever is configured. */
  resolve(wanted?: string): Promise<NamedModel>;
  list(): Promise<readonly ModelRow[]>;
  /** Whether there is such a provider; where not, its models are out of reach. */
  hasProvider(id: string): Promise<boolean>;
  /** The same for one session, which may bring providers, a name and a network of its own. Asks nobody. */
  forSession(own: OwnModels): Models;
}

export type NamedModel = SessionModel & { readonly label: string };

/** What a session has of its own on the way to its models. */
export interface OwnModels extends GivenProviders {
  /** The model it was asked to begin with. */
  readonly model?: string | undefined;
  /** The program that speaks to the session; told to providers with ours. */
  readonly clientName?: string | undefined;
  /** What reaches the network in its place, for everything that concerns this session's models. */
  readonly fetch?: ModelFetch | undefined;
  /** And what opens WebSockets. */
  readonly openSocket?: OpenSocket | undefined;
  /** False: models of GitHub are not spoken to over WebSockets. */
  readonly githubSockets?: boolean | undefined;
  /** Who it is on GitHub, if anybody: their models are among its own. */
  readonly identity?: Pick<SessionIdentity, "settingsWith"> | undefined;
}

const FAUX = "faux:";

/** Reads the user's configuration when first asked, and keeps one limiter per provider and model for all who call. */
export function models(options: {
  environment: Readonly<Record<string, string | undefined>>;
  home: string;
  stamp: Stamp;
  userAgent?: string;
  importModule?: (specifier: string) => Promise<unknown>;
  onKey?: (key: string, providerId: string) => void;
}): Models {
  const { environment, home, stamp, userAgent, importModule, onKey } = options;
  const dependencies = {
    stamp,
    packagesFolder: home,
    refused: new RefusedParameters(),
    connections: {},
    ...(userAgent !== undefined && { userAgent }),
    ...(importModule && { importModule }),
    ...(onKey && { onKey }),
  };
  let settings: Promise<Settings> | undefined;
  const known = (): Promise<Settings> => {
    settings ??= loadSettings(environment, home);
    return settings;
  };
  const ofProcess = guard(stamp);
  const modelsOf = (place: Place): Models => ({
    async resolve(wanted) {
      if (wanted?.startsWith(FAUX)) return faux(wanted.slice(FAUX.length));
      const settings = await settingsOrWhy(place);
      if (settings instanceof TroupeError) return absent(settings, wanted);
      if (wanted === undefined && place.isNameless) return nameless();
      return place.guarded(await resolveModel(settings, wanted, place.dependencies));
    },
    async list() {
      const { listModels } = await import("../../model/list-models.ts");
      return listModels(await place.settings(), place.dependencies);
    },
    hasProvider: async (id) => (await place.settings()).providers.some((provider) => provider.id === id),
    forSession: (own) => modelsOf(ownPlace(own, place, stamp)),
  });
  return modelsOf({ settings: known, dependencies, guarded: ofProcess });
}

/** Where models come from, and how they are reached. */
interface Place {
  settings(): Promise<Settings>;
  readonly dependencies: CatalogDependencies;
  /** There is a provider, and nobody has said which of its models is meant. */
  readonly isNameless?: boolean;
  guarded(model: ResolvedModel): NamedModel;
}

function ownPlace(own: OwnModels, place: Place, stamp: Stamp): Place {
  const { clientName, fetch, openSocket, model } = own;
  const { provider, providers, models: given, identity } = own;
  const brings = [provider, providers, given, identity].some((part) => part !== undefined);
  const introduction = clientName === undefined ? "" : headerText(clientName);
  if (!brings && !fetch && introduction === "") return place;
  let settings: Promise<Settings> | undefined;
  return {
    settings() {
      settings ??= brings ? settingsOf(own, place, model) : place.settings();
      settings.catch(() => {
        settings = undefined;
      });
      return settings;
    },
    dependencies: {
      ...place.dependencies,
      ...(introduction !== "" && { userAgent: `${introduction} ${place.dependencies.userAgent ?? ""}`.trim() }),
      ...(fetch && { fetch }),
      ...(openSocket && { openSocket }),
    },
    isNameless: own.provider !== undefined && model === undefined && own.provider.modelId === undefined,
    // Its keys and its network are its own, so are limits and failures met with them.
    guarded: brings || fetch ? guard(stamp) : place.guarded,
  };
}

async function settingsOf(own: OwnModels, place: Place, model: string | undefined): Promise<Settings> {
  const configured = await place.settings();
  // One provider for everything leaves nothing to ask GitHub for.
  const carrying = { fetch: own.fetch, sockets: own.githubSockets };
  const known = own.provider ? configured : ((await own.identity?.settingsWith(configured, carrying)) ?? configured);
  const { settingsWith } = await import("../../model/given-providers.ts");
  return settingsWith(known, own, model);
}

/** What may stand in a header, bounded. */
const headerText = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]+/g, "")
    .trim()
    .slice(0, 200);

/** Retries, and one limiter for each model. */
function guard(stamp: Stamp): (model: ResolvedModel) => NamedModel {
  const limiters = new Map<string, Limiter>();
  return ({ provider, providerId, price, maxConcurrency, ...rest }) => {
    const key = `${providerId}/${rest.model}`;
    const limiter =
      limiters.get(key) ?? new Limiter({ stamp, ...(maxConcurrency !== undefined && { maxConcurrency }) });
    limiters.set(key, limiter);
    return {
      ...rest,
      providerId,
      provider: withRetry(provider, { stamp, limiter }),
      costOf: (usage) => costOf(usage, price),
    };
  };
}

/** What passes is no reason to open no session: who has the models is asked again with the next message. */
async function settingsOrWhy(place: Place): Promise<Settings | TroupeError> {
  try {
    return await place.settings();
  } catch (cause) {
    if (cause instanceof TroupeError && cause.kind === "provider") return cause;
    throw cause;
  }
}

async function absent(why: TroupeError, wanted: string | undefined): Promise<NamedModel> {
  const { absentModel } = await import("../../model/given-providers.ts");
  const label = wanted ?? "a model not known yet";
  return { ...absentModel(why, wanted), label, absent: { why: why.message, wanted }, costOf: () => null };
}

/** A session may be opened before anyone knows its model; to speak needs one. */
async function nameless(): Promise<NamedModel> {
  const { namelessModel } = await import("../../model/given-providers.ts");
  return { ...namelessModel(), label: "no model", costOf: () => null };
}

/** A scripted model: plays its steps as they are, failures included. */
async function faux(script: string): Promise<NamedModel> {
  if (script === "") throw new TroupeError("usage", "--model faux: needs the path of a script: faux:script.json.");
  const { readFauxModel } = await import("../../model/faux/faux-script.ts");
  const provider = await readFauxModel(resolve(script));
  return { provider, providerId: "faux", model: "faux", label: `faux (${script})`, costOf: () => 0 };
}

async function loadSettings(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): Promise<Settings> {
  const providersFile = await readIfThere(join(home, "providers.json"));
  const registry = registryPath(environment);
  const registryFile = registry === undefined ? undefined : await readRequired(registry, "COPILOT_PROVIDERS_CONFIG");
  return readSettings({ environment, ...(providersFile && { providersFile }), ...(registryFile && { registryFile }) });
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
