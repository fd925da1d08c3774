import type { ProviderSettings } from "./settings/settings.ts";

/** How a provider searches the web: with a tool of its wire, or over Gemini's own wire. */
export type SearchKind = "responses" | "anthropic" | "gemini";

/**
 * Returns how the provider searches the web itself, or `undefined` if it does not. Decided by its URL: servers that
 * merely speak the same wire do not search. `webSearch` in the providers file overrides this.
 */
export function searchOf(
  provider: Pick<ProviderSettings, "wire" | "baseUrl" | "npm" | "webSearch">,
): SearchKind | undefined {
  const { wire, baseUrl, npm, webSearch } = provider;
  if (npm !== undefined || webSearch === false) return undefined;
  const isAt = (host: string): boolean => webSearch === true || hostOf(baseUrl) === host;
  if (wire === "responses") return isAt("api.openai.com") ? "responses" : undefined;
  if (wire === "anthropic") return isAt("api.anthropic.com") ? "anthropic" : undefined;
  return baseUrl.endsWith(GEMINI_CHAT) && isAt("generativelanguage.googleapis.com") ? "gemini" : undefined;
}

/** The path of Gemini's chat endpoint below its API. */
export const GEMINI_CHAT = "/openai";

function hostOf(baseUrl: string): string | undefined {
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : undefined;
}
