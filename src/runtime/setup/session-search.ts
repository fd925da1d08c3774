/** Web search of a session: by its model's provider, by a service that the user configured, or none. */
import type { SessionEvent } from "../../protocol/event.ts";
import type { SessionModel } from "../../session/session-model.ts";
import { searchTools } from "../../tools/builtin.ts";
import type { Tool } from "../../tools/tool.ts";
import type { WebSearch } from "../../tools/web/search.ts";
import { endpointSearch } from "../../tools/web/search-endpoint.ts";
import { type EngineName, engineNames, searchEngines } from "../../tools/web/search-engines.ts";
import { version } from "../version.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { SessionSetup } from "./session-setup.ts";

export interface SessionSearch {
  /** The search tool if a search is available, otherwise none. */
  tools(): readonly Tool[];
  /** The configured search service, if any. A model that searches is preferred. */
  readonly port: WebSearch | undefined;
  /** The session's current model, if it can and may search. */
  model(): SessionModel | undefined;
  /** Adds or removes the tool when the session's model changes. */
  onEvent(event: SessionEvent): void;
}

type Environment = SessionSetup["environment"];
type SearchSettings = NonNullable<Workspace["settings"]["effective"]["webSearch"]>;

const CHOICES = ["auto", "model", "off", ...engineNames] as const;
type Choice = (typeof CHOICES)[number];

export function sessionSearch(setup: SessionSetup, { settings }: Workspace): SessionSearch {
  const { environment, models, channel } = setup;
  const searchSettings = settings.effective.webSearch ?? {};
  const choice = choiceOf(environment, searchSettings, channel.notice);
  const port = portOf(choice, searchSettings, setup);
  const mayAskModel = choice === "auto" || choice === "model";
  const model = (): SessionModel | undefined =>
    mayAskModel && models.current.searchAddress !== undefined ? models.current : undefined;
  return {
    port,
    model,
    tools: () => (port !== undefined || model() !== undefined ? searchTools : []),
    onEvent({ type }) {
      if (type === "session.model_change" && mayAskModel && port === undefined) channel.toolsChanged();
    },
  };
}

/** Returns the choice from the environment, which wins over settings. */
function choiceOf(
  environment: Environment,
  { engine = "auto" }: SearchSettings,
  notice: (message: string) => void,
): Choice {
  const given = firstSet(environment, ["TROUPE_WEB_SEARCH"])?.toLowerCase();
  if (given === undefined) return engine;
  const found = CHOICES.find((choice) => choice === given);
  if (found === undefined) {
    notice(`TROUPE_WEB_SEARCH is ${JSON.stringify(given.slice(0, 40))}; it can be ${CHOICES.join(", ")}.`);
  }
  return found ?? engine;
}

function portOf(
  choice: Choice,
  searchSettings: SearchSettings,
  { environment, shared, channel }: SessionSetup,
): WebSearch | undefined {
  const named = engineNames.find((name) => name === choice);
  if (named !== undefined) {
    // The settings' address and key belong to the service that the settings name.
    const found = serviceOf(
      named,
      environment,
      searchSettings.engine === undefined || searchSettings.engine === named ? searchSettings : {},
    );
    if ("missing" in found) channel.notice(`Web search is not available: ${found.missing}`);
    return "missing" in found ? undefined : openSearch(found, shared);
  }
  if (choice !== "auto") return undefined;
  for (const name of engineNames) {
    const found = serviceOf(name, environment, {});
    if (!("missing" in found)) return openSearch(found, shared);
  }
  return undefined;
}

interface SearchService {
  readonly engine: (typeof searchEngines)[EngineName];
  readonly url: string;
  readonly key: string;
  readonly keySource: string;
}

/** Returns the service's address and key, or what the user must set first. */
function serviceOf(
  name: EngineName,
  environment: Environment,
  searchSettings: SearchSettings,
): SearchService | { readonly missing: string } {
  const engine = searchEngines[name];
  const { urlVariable } = engine;
  const url = (
    searchSettings.url ??
    firstSet(environment, urlVariable === undefined ? [] : [urlVariable]) ??
    engine.url
  ).trim();
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    const where = urlVariable === undefined ? "webSearch.url in your settings" : urlVariable;
    return { missing: `${engine.name} needs an address such as https://host. Set ${where}.` };
  }
  const variables = searchSettings.apiKeyVariable === undefined ? engine.keyVariables : [searchSettings.apiKeyVariable];
  const key = searchSettings.apiKey ?? firstSet(environment, variables);
  const [variable = ""] = variables;
  if (key === undefined && variable !== "") return { missing: `${engine.name} needs a key. Set ${variable}.` };
  const keySource = searchSettings.apiKey === undefined ? variable : "webSearch.apiKey in the settings";
  return { engine, url: url.replace(/\/+$/, ""), key: key ?? "", keySource };
}

function openSearch(service: SearchService, { addSecret }: SessionSetup["shared"]): WebSearch {
  if (service.key !== "") addSecret(service.key, `key of ${service.engine.name}`);
  return endpointSearch({ ...service, userAgent: `troupe/${version}` });
}

function firstSet(environment: Environment, names: readonly string[]): string | undefined {
  return names.map((name) => environment[name]?.trim()).find((value) => value !== undefined && value !== "");
}
