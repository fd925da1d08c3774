import { readFile } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import type { Stamp } from "../lib/stamp.ts";
import { type ResolvedModel, resolveModel } from "../model/catalog.ts";
import { Limiter } from "../model/limiter.ts";
import type { ModelRow } from "../model/list-models.ts";
import { costOf } from "../model/prices.ts";
import { withRetry } from "../model/retry.ts";
import { readSettings, registryPath, type Settings, type TextFile } from "../model/settings.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionModel } from "../session/start-run.ts";

export interface Models {
  /** The model a person means, ready to be spoken to; without a name, whatever is configured. */
  resolve(wanted?: string): Promise<SessionModel & { readonly label: string }>;
  list(): Promise<readonly ModelRow[]>;
}

const FAUX = "faux:";

/** Reads the user's configuration when first asked, and keeps one limiter per provider and model for all who call. */
export function models(options: {
  environment: Readonly<Record<string, string | undefined>>;
  home: string;
  stamp: Stamp;
  importModule?: (specifier: string) => Promise<unknown>;
  onKey?: (key: string, providerId: string) => void;
}): Models {
  const { environment, home, stamp, importModule, onKey } = options;
  const limiters = new Map<string, Limiter>();
  const dependencies = {
    stamp,
    packagesFolder: home,
    ...(importModule && { importModule }),
    ...(onKey && { onKey }),
  };
  let settings: Promise<Settings> | undefined;
  const known = (): Promise<Settings> => {
    settings ??= loadSettings(environment, home);
    return settings;
  };
  const guarded = (model: ResolvedModel): SessionModel & { label: string } => {
    const { provider, providerId, price, maxConcurrency, ...rest } = model;
    const key = `${providerId}/${model.model}`;
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
  return {
    async resolve(wanted) {
      if (wanted?.startsWith(FAUX)) return faux(wanted.slice(FAUX.length));
      return guarded(await resolveModel(await known(), wanted, dependencies));
    },
    async list() {
      const { listModels } = await import("../model/list-models.ts");
      return listModels(await known(), dependencies);
    },
  };
}

/** A scripted model: plays its steps as they are, failures included. */
async function faux(script: string): Promise<SessionModel & { label: string }> {
  if (script === "") throw new TroupeError("usage", "--model faux: needs the path of a script: faux:script.json.");
  const { readFauxModel } = await import("../model/faux/faux-script.ts");
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
