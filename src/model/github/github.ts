/**
 * GitHub identity and models, for host programs that give a token and the API's URL. Without both, no request is sent.
 * Replies are cached in memory for a while, by token.
 */
import { defined } from "../../lib/defined.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { isAddress } from "../is-address.ts";
import type { RequestOrigin } from "../provider.ts";
import type { ModelSettings, ProviderSettings } from "../settings/settings.ts";
import { CUSTOM_PROVIDER, type ModelVariables } from "../settings/settings-environment.ts";
import type { ModelFetch } from "../wire/endpoint.ts";
import { getJson } from "./get-json.ts";
import { defaultOf, type GithubModel, knownModel, readModels } from "./models.ts";
import { type GithubUser, readUser } from "./user.ts";

/** The provider's id, as in `github/model`. */
export const GITHUB = "github";

export interface GithubOptions {
  readonly environment: ModelVariables;
  readonly stamp: Stamp;
  readonly userAgent: string;
  /** The environment variable with the program's token. */
  readonly tokenVariable?: string | undefined;
  /** False: a token that is merely in the environment is not used. */
  readonly ambient?: boolean | undefined;
}

export interface GithubToken {
  readonly token: string;
  readonly authType: AuthType;
}

/**
 * The origin of the token: `token` from the program, `env` from the environment, `user` from a sign-in. A client may
 * report the others.
 */
export type AuthType = "token" | "env" | "user" | "hmac" | "gh-cli" | "api-key" | "copilot-api-token";

/** A user who signed in while the process runs. Stored in memory only. */
export interface Account {
  readonly host: string;
  readonly login: string;
  readonly token: string;
}

export interface GithubStatus {
  readonly isAuthenticated: boolean;
  readonly statusMessage: string;
  readonly authType?: AuthType;
  readonly host?: string;
  readonly login?: string;
  readonly plan?: string;
}

/** How a request is sent, and on whose behalf. */
export interface SendContext {
  readonly fetch?: ModelFetch | undefined;
  readonly origin?: RequestOrigin | undefined;
  /** False: no WebSockets to models. */
  readonly sockets?: boolean | undefined;
}

const KEPT_MS = 30 * 60_000;
const MAX_KEPT = 100;

export class Github {
  readonly #options: GithubOptions;
  /** The API for users. */
  readonly #githubUrl: string | undefined;
  /** The API for models, if it does not depend on the user's account. */
  readonly #apiUrl: string | undefined;
  readonly #users = new Map<string, Kept<GithubUser>>();
  #accounts: readonly Account[] = [];
  readonly #models = new Map<string, Kept<readonly GithubModel[]>>();

  constructor(options: GithubOptions) {
    this.#options = options;
    this.#githubUrl = address(options.environment, "COPILOT_DEBUG_GITHUB_API_URL");
    this.#apiUrl = address(options.environment, "COPILOT_API_URL");
  }

  /** True if a GitHub URL is configured. */
  get isReachable(): boolean {
    return this.#githubUrl !== undefined || this.#apiUrl !== undefined;
  }

  /** The process's token, unless a session has its own. */
  get ambient(): GithubToken | undefined {
    const { environment, tokenVariable, ambient } = this.#options;
    const given = tokenVariable === undefined ? undefined : environment[tokenVariable]?.trim();
    if (given) return { token: given, authType: "token" };
    const account = this.#accounts.at(-1);
    if (account) return { token: account.token, authType: "user" };
    if (ambient === false) return undefined;
    const found = AMBIENT.map((name) => environment[name]?.trim()).find(Boolean);
    return found ? { token: found, authType: "env" } : undefined;
  }

  get accounts(): readonly Account[] {
    return this.#accounts;
  }

  /** Rejects when the token is refused; then no account is added. */
  async signIn({ host, token }: Omit<Account, "login">): Promise<void> {
    const { login } = await this.user(token);
    this.#accounts = [...this.#accounts.filter((known) => known.login !== login), { host, login, token }];
  }

  /** Removes this account, or the last one that signed in. Returns true if others remain. */
  signOut(login = this.#accounts.at(-1)?.login): boolean {
    this.#accounts = this.#accounts.filter((known) => known.login !== login);
    return this.#accounts.length > 0;
  }

  /** Returns the base URL of the user's models and the headers of each request. */
  async endpoint(token: string): Promise<{ baseUrl: string; token: string; headers: Record<string, string> }> {
    return {
      baseUrl: await this.#apiOf(token),
      token,
      headers: sentWithAll(`${this.#options.userAgent} (Copilot API)`),
    };
  }

  /** Returns the endpoint of the user's MCP server, or `undefined` if their organisation does not allow it. */
  async mcpEndpoint(token: string): Promise<Awaited<ReturnType<Github["endpoint"]>> | undefined> {
    const isAllowed = this.#githubUrl === undefined || (await this.user(token)).isMcpEnabled;
    return isAllowed ? { ...(await this.endpoint(token)), headers: sentWithAll(this.#options.userAgent) } : undefined;
  }

  /** Never rejects: `statusMessage` describes a failure. */
  async status(signIn: GithubToken | undefined = this.ambient): Promise<GithubStatus> {
    if (!signIn) return { isAuthenticated: false, statusMessage: "Not authenticated" };
    if (this.#githubUrl === undefined) {
      const where = this.isReachable ? "COPILOT_DEBUG_GITHUB_API_URL is not set" : "no GitHub address is configured";
      return { isAuthenticated: false, statusMessage: `Not authenticated: ${where}` };
    }
    try {
      const { login, plan } = await this.user(signIn.token);
      return {
        isAuthenticated: true,
        authType: signIn.authType,
        login,
        statusMessage: login,
        host: "https://github.com",
        ...defined({ plan }),
      };
    } catch (error) {
      return { isAuthenticated: false, statusMessage: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Rejects with the status when the token is refused. */
  user(token: string): Promise<GithubUser> {
    const base = this.#githubUrl;
    if (base === undefined) throw new TroupeError("configuration", "COPILOT_DEBUG_GITHUB_API_URL is not set.");
    return this.#kept(this.#users, token, async () => {
      const user = readUser(
        await getJson(`${base}/copilot_internal/user`, { token, headers: sentWithAll(this.#options.userAgent) }),
      );
      if (!user) throw new TroupeError("configuration", "GitHub's answer does not describe a user.");
      return user;
    });
  }

  async models(
    token: string,
    carrying: SendContext & { readonly afresh?: boolean } = {},
  ): Promise<readonly GithubModel[]> {
    const base = await this.#apiOf(token);
    const key = `${base} ${token}`;
    if (carrying.afresh) this.#models.delete(key);
    return this.#kept(this.#models, key, async () => {
      const { fetch, origin } = carrying;
      const answer = await getJson(`${base}/models`, {
        token,
        headers: sentWithAll(this.#options.userAgent),
        fetch,
        origin,
      });
      const models = readModels(answer);
      if (!models) throw new TroupeError("configuration", `The answer of ${base}/models is not a list of models.`);
      return models;
    });
  }

  /**
   * Returns the settings with the user's GitHub models added. They come first, unless a base URL or a model was chosen
   * explicitly.
   */
  async settingsWith(known: ModelSettings, token: string, carrying: SendContext): Promise<ModelSettings> {
    const [baseUrl, models] = await Promise.all([this.#apiOf(token), this.models(token, carrying)]);
    const usual = defaultOf(models);
    const isSocketless = carrying.sockets === false || isOn(this.#options.environment[SOCKETLESS]);
    const provider: ProviderSettings = {
      id: GITHUB,
      name: "GitHub",
      wire: "completions",
      baseUrl,
      auth: "bearer",
      key: { type: "value", value: token },
      headers: sentWithAll(),
      listsModels: false,
      models: models.map((model) => ({ ...knownModel(model), ...(isSocketless && { sockets: false }) })),
      configured: true,
      keyHint: "Check the GitHub token.",
      ...defined({ defaultModel: usual }),
    };
    const isChosen = known.defaultModel !== undefined || known.providers.some(({ id }) => id === CUSTOM_PROVIDER);
    const others = known.providers.filter(({ id }) => id !== GITHUB);
    if (isChosen) return { ...known, providers: [...others, provider] };
    return { ...known, providers: [provider, ...others], namesGoTo: GITHUB };
  }

  async #apiOf(token: string): Promise<string> {
    if (this.#apiUrl !== undefined) return this.#apiUrl;
    const { apiUrl } = await this.user(token);
    if (apiUrl !== undefined && isAddress(apiUrl)) return withoutSlash(apiUrl);
    throw new TroupeError("configuration", "GitHub returned no address for this account's models.", {
      hint: "Set COPILOT_API_URL.",
    });
  }

  /** Caches the result and shares it among concurrent callers. Failures are not cached. */
  #kept<T>(all: Map<string, Kept<T>>, key: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#options.stamp.monotonic();
    const known = all.get(key);
    if (known && known.until > now) return known.value;
    const value = ask();
    all.delete(key);
    all.set(key, { value, until: now + KEPT_MS });
    value.catch(() => all.get(key)?.value === value && all.delete(key));
    for (const oldest of all.keys()) {
      if (all.size <= MAX_KEPT) break;
      all.delete(oldest);
    }
    return value;
  }
}

interface Kept<T> {
  readonly value: Promise<T>;
  readonly until: number;
}

/** Returns the common headers, without the token. */
function sentWithAll(userAgent?: string): Record<string, string> {
  return {
    ...defined({ "User-Agent": userAgent }),
    "Copilot-Integration-Id": "troupe",
    "X-GitHub-Api-Version": "2025-05-01",
  };
}

const SOCKETLESS = "COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES";

const isOn = (value: string | undefined): boolean => /^(?:1|true|yes|on)$/i.test(value?.trim() ?? "");

/** The first variable that is set is used. */
const AMBIENT = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"] as const;

function address(environment: ModelVariables, variable: string): string | undefined {
  const value = environment[variable]?.trim();
  if (!value) return undefined;
  if (isAddress(value)) return withoutSlash(value);
  throw new TroupeError("configuration", `${variable}: "${value.replace(/[^/]*@/, "…@")}" is not an address`);
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, "");
