/** Keys of model providers that a user enters: each is tested with one request and stored in `providers.json`. */
import { existsSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { type Disk, nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { withFileLock } from "../../lib/node/file-lock.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { resolveModel } from "../../model/catalog.ts";
import { checkModel } from "../../model/check-model.ts";
import type { CatalogDependencies } from "../../model/connect.ts";
import { ModelError } from "../../model/model-error.ts";
import { providerList } from "../../model/providers/list.ts";
import { checkedKey, storedKeys, withoutProviderKeys, withProviderKey } from "../../model/settings/key-change.ts";
import type { ModelSettings, ProviderSettings, TextFile } from "../../model/settings/settings.ts";
import { TroupeError, withHint } from "../../protocol/errors.ts";

export interface ProviderKeys {
  /** Returns the providers whose only missing part is a key, or which have one. */
  list(): Promise<readonly KeyedProvider[]>;
  /**
   * Tests the key with one request, stores it, and returns the model that answered. From then on every session uses it.
   * Rejects with a `TroupeError` and stores nothing if the provider refuses the key.
   */
  set(given: { readonly provider: string; readonly apiKey: string }, signal?: AbortSignal): Promise<{ model: string }>;
  /**
   * Removes the stored keys, or that of one provider. Returns whose keys were removed, and which of these providers still
   * have a key, from the environment or a command. Rejects with a `TroupeError` for a provider that takes no key.
   */
  clear(
    provider?: string,
  ): Promise<{ readonly removed: readonly string[]; readonly remaining: readonly KeyedProvider[] }>;
}

export interface KeyedProvider {
  readonly id: string;
  readonly name: string;
  /** Receives the key. Settings and the environment can name another than the provider's own. */
  readonly host: string;
  readonly hasKey: boolean;
}

interface Parts {
  /** The path of `providers.json`. */
  readonly file: string;
  readonly disk?: Disk;
  /** Returns the current settings. */
  settings(): Promise<ModelSettings>;
  /** Returns the settings as if the file had this text. */
  settingsWith(providersFile: TextFile): Promise<ModelSettings>;
  readonly dependencies: CatalogDependencies;
}

const MAX_FILE_BYTES = 1024 * 1024;

export function providerKeys(parts: Parts): ProviderKeys {
  const { file: path, settings, settingsWith, dependencies, disk = nodeDisk } = parts;
  const list = async (): Promise<readonly KeyedProvider[]> => {
    const { providers } = await settings();
    return providers.filter(takesKey).map(({ id, name, baseUrl, missing }) => {
      return { id, name, host: hostOf(baseUrl), hasKey: missing === undefined };
    });
  };
  const change = async (changed: (file: TextFile) => string): Promise<void> => {
    await disk.mkdir(dirname(path));
    await withFileLock({ path, disk, Failure: TroupeError }, async () => {
      await replaceFile(disk, realPath(path), changed(readFile(path)));
    });
  };
  return {
    list,
    async set({ provider: id, apiKey: given }, signal) {
      const apiKey = checkedKey(given);
      const { providers } = await settings();
      const provider = providers.find((one) => one.id === id);
      if (!provider || !takesKey(provider)) throw unknown(id, providers.filter(takesKey));
      const candidate = await settingsWith({ path, text: withProviderKey(readFile(path), id, apiKey) });
      const reference = referenceOf(candidate, id);
      const model = await resolveModel(candidate, reference, dependencies);
      await checkModel(model, signal).catch((cause: unknown) => {
        throw signal?.aborted ? cause : keyError(provider, cause);
      });
      await change((file) => {
        signal?.throwIfAborted();
        return withProviderKey(file, id, apiKey);
      });
      return { model: `${id}/${model.id ?? model.model}` };
    },
    async clear(provider) {
      const { providers } = await settings();
      const known = providers.filter(takesKey);
      const chosen = known.map(({ id }) => id).filter((id) => provider === undefined || id === provider);
      if (provider !== undefined && chosen.length === 0) throw unknown(provider, known);
      const stored = existsSync(path) ? storedKeys(readFile(path)) : [];
      const removed = chosen.filter((id) => stored.includes(id));
      if (removed.length > 0) await change((file) => withoutProviderKeys(file, removed));
      const remaining = (await list()).filter(({ id, hasKey }) => hasKey && chosen.includes(id));
      return { removed, remaining };
    },
  };
}

/** Servers on this machine, packages and providers without a known address take more than a key, or none. */
function takesKey({ id, local, npm, baseUrl, defaultModel, models }: ProviderSettings): boolean {
  const isKnown = providerList.some((known) => known.id === id && known.keyVariables.length > 0);
  return (
    isKnown && local === undefined && npm === undefined && baseUrl !== "" && (defaultModel ?? models[0]) !== undefined
  );
}

const hostOf = (baseUrl: string): string => (URL.canParse(baseUrl) ? new URL(baseUrl).host : baseUrl);

function referenceOf({ providers }: ModelSettings, id: string): string {
  const { defaultModel, models } = providers.find((one) => one.id === id) ?? { models: [] };
  return `${id}/${defaultModel ?? models[0]?.name ?? ""}`;
}

function readFile(path: string): TextFile {
  const file = readSmallFile(path, { maxBytes: MAX_FILE_BYTES });
  if (file.kind === "refused") throw new TroupeError("configuration", `${path} ${file.reason}.`);
  return { path, text: file.kind === "text" && file.text.trim() !== "" ? file.text : "{}" };
}

/** Follows a link, so that it stays and its target is changed. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function unknown(id: string, known: readonly ProviderSettings[]): TroupeError {
  const names = known.map((provider) => provider.id).join(", ");
  return new TroupeError("usage", `No key can be stored for the provider "${id}".`, { hint: `One of: ${names}.` });
}

function keyError({ name }: ProviderSettings, cause: unknown): TroupeError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const kind = cause instanceof ModelError && cause.kind !== "authentication" ? "provider" : "usage";
  const hint = cause instanceof ModelError ? cause.hint : undefined;
  return new TroupeError(kind, withHint(`The key was not stored: ${name} did not answer with it: ${reason}`, hint), {
    cause,
  });
}
