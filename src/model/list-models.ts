/** Lists all models, with the reason for those that cannot be used yet. */
import { defined } from "../lib/defined.ts";
import { UNDERSTUDY } from "./catalog.ts";
import type { CatalogDependencies } from "./connect.ts";
import { listServed, type Served } from "./discover.ts";
import { signedHeaders } from "./key.ts";
import { free, type Price } from "./prices.ts";
import type { ModelSettings, ProviderSettings } from "./settings/settings.ts";

export interface ModelRow {
  /** A reference for `resolveModel`. */
  readonly ref: string;
  readonly provider: string;
  /** The session's name for the model. */
  readonly id: string;
  readonly name: string;
  readonly usable: boolean;
  /** Why the model cannot be used; empty if it can. */
  readonly reason: string;
  readonly contextWindow: number | null;
  readonly maxOutputTokens?: number;
  /** False: the model does not accept images. Absent if unknown. */
  readonly vision?: boolean;
  readonly price: Price | null;
}

export async function listModels(settings: ModelSettings, dependencies: CatalogDependencies = {}): Promise<ModelRow[]> {
  const rows = await Promise.all(settings.providers.map((provider) => rowsOf(provider, settings, dependencies)));
  const understudy = {
    ref: UNDERSTUDY,
    provider: UNDERSTUDY,
    id: UNDERSTUDY,
    name: UNDERSTUDY,
    usable: true,
    reason: "",
    contextWindow: null,
    price: free,
  };
  return [...rows.flat(), understudy];
}

async function rowsOf(
  provider: ProviderSettings,
  settings: ModelSettings,
  dependencies: CatalogDependencies,
): Promise<ModelRow[]> {
  if (provider.missing !== undefined) return rows(provider, [], provider.missing);
  // Servers without configuration are only searched on this machine, and only if discovery is on.
  const asked = provider.listsModels && (provider.configured || (provider.local !== undefined && settings.discovery));
  if (!asked) return rows(provider, [], provider.configured ? "" : "not configured");
  const { fetch, stamp } = dependencies;
  const headers = signedHeaders(provider, stamp);
  const served = await listServed(provider, { headers, withinMs: 1_000, ...(fetch === undefined ? {} : { fetch }) });
  return rows(provider, served.type === "models" ? served.models : [], obstacle(provider, served));
}

function obstacle(provider: ProviderSettings, served: Served): string {
  const { host } = new URL(provider.baseUrl);
  if (served.type === "refused" && (served.status === 401 || served.status === 403)) {
    return `${host} refused the key (HTTP ${served.status})`;
  }
  if (provider.local === undefined || served.type === "refused") return "";
  if (served.type === "unavailable") return `no server at ${host}`;
  return served.models.length === 0 ? `the server at ${host} has no models` : "";
}

function rows(
  provider: ProviderSettings,
  served: readonly { name: string; contextWindow?: number }[],
  reason: string,
): ModelRow[] {
  const names = [...new Set([...provider.models, ...served].map((model) => model.name))];
  const shared = { provider: provider.id, usable: reason === "", reason };
  const fallback = provider.local === undefined ? null : free;
  if (names.length === 0) {
    const open = reason === "" ? "name a model" : reason;
    const ref = `${provider.id}/…`;
    return [
      {
        ref,
        provider: provider.id,
        id: ref,
        name: ref,
        usable: false,
        reason: open,
        contextWindow: null,
        price: fallback,
      },
    ];
  }
  return names.map((name) => {
    const known = provider.models.find((model) => model.name === name);
    const window = known?.contextWindow ?? served.find((model) => model.name === name)?.contextWindow ?? null;
    const ref = `${provider.id}/${name}`;
    return {
      ref,
      ...shared,
      id: known?.id ?? ref,
      name: known?.displayName ?? name,
      contextWindow: window,
      price: known?.price ?? fallback,
      ...defined({ maxOutputTokens: known?.maxOutputTokens, vision: known?.vision }),
    };
  });
}
