/** Operations of `troupe mcp` and host programs on configured servers, without a session. */

import type { FetchLike } from "@modelcontextprotocol/client";
import { defined } from "../../../lib/defined.ts";
import type { Disk } from "../../../lib/node/disk.ts";
import type { PinnedItem } from "../../../lib/pinned-item.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { login } from "../oauth/oauth.ts";
import { fileSignIn } from "../oauth/oauth-store.ts";
import type { McpServerConfig, McpStatus, McpToolDefinition } from "../server.ts";
import { resolveServers, type ServerSources } from "./config.ts";
import { noticeText } from "./config-notice.ts";
import { maskedArguments, maskedUrl, maskedValues, pinnedItem, shownServer } from "./config-pin.ts";
import { userServers } from "./config-store.ts";
import { type McpPins, openPins, summaryOf } from "./pins.ts";
import { shownChange, shownDefinition, visible } from "./pins-show.ts";

export interface McpAdministrationOptions {
  readonly sources: ServerSources;
  readonly disk: Disk;
  /** Connects once and lists the tools. */
  probe?(config: McpServerConfig): Promise<ServerCheck>;
  /** Records in the trust store that the user approved this entry of a project. */
  approveItem?(item: PinnedItem<"mcp">): Promise<void>;
  /** Opens a `fetch` to a remote server for a sign-in. */
  openFetch?(config: McpServerConfig): Promise<{ readonly fetch: FetchLike; close(): void }>;
}

export interface ServerCheck {
  readonly status: McpStatus;
  readonly error?: string;
  readonly definitions?: readonly McpToolDefinition[];
}

type ServerState = "enabled" | "disabled" | "untrusted" | "new" | "changed";

/** A server for display; contains no value that may be secret. */
export interface McpServerView {
  readonly name: string;
  readonly scope: McpServerConfig["scope"];
  readonly source: string;
  readonly transport: "stdio" | "http" | "sse";
  readonly state: ServerState;
  /** One line: the command or address. */
  readonly shown: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly signedIn?: boolean;
  /** Such as "2 tools, 1 new"; absent when it was never connected. */
  readonly summary?: string;
  readonly tools: readonly { readonly name: string; readonly state: "ok" | "changed" | "new" }[];
}

/** The changes that the user is asked to approve. */
export interface McpReview {
  /** Set when the entry itself must be approved. */
  readonly entry?: string;
  /** Full definitions of new tools, and diffs of changed ones. */
  readonly tools: readonly string[];
  agree(): Promise<void>;
}

export type McpAdministration = Awaited<ReturnType<typeof mcpAdministration>>;

export async function mcpAdministration(options: McpAdministrationOptions) {
  const { sources, disk } = options;
  const { stateRoot } = sources;
  const notices: string[] = [];
  const pins = await openPins({ disk, stateRoot, onNotice: (message) => notices.push(message) });
  const own = userServers({ disk, stateRoot });
  const known = (): Known[] => {
    const resolved = resolveServers(sources);
    notices.push(...resolved.notices.map(noticeText));
    return [
      ...resolved.servers.map((config, index) => {
        const written = resolved.written[index] ?? config;
        return { config, written, state: "enabled" as const, item: pinnedItem(written) };
      }),
      ...resolved.disabled.map(({ config, reason, item }) => ({ config, written: config, state: reason, item })),
    ];
  };
  const find = (name: string): Known => {
    const found = known().find(({ config }) => config.name === name);
    if (found) return found;
    throw new TroupeError("usage", `There is no MCP server ${name}.`, { hint: "See: troupe mcp list" });
  };
  const signIn = (config: McpServerConfig) => fileSignIn({ disk, stateRoot, config });
  return {
    file: own.file,
    list: async (): Promise<readonly McpServerView[]> =>
      known().map((one) => {
        const isRemote = one.config.transport.type !== "stdio";
        return viewOf(one, pins, isRemote ? signIn(one.config).read()?.tokens !== undefined : undefined);
      }),
    /** Returns problems of the configurations read so far, each once. */
    notices: (): readonly string[] => [...new Set(notices.splice(0))],
    add: (name: string, entry: object) => own.set(name, entry, "add"),
    async remove(name: string) {
      const config = known().find((one) => one.config.name === name)?.config;
      if (config) await pins.forget(config);
      return own.remove(name);
    },
    setEnabled: (name: string, enabled: boolean) => own.setEnabled([name], enabled),
    check: async (name: string): Promise<ServerCheck> => checkServer(find(name), options, pins),
    review: (name: string): Promise<McpReview> => review(find(name), options, pins),
    async login(name: string, more: McpLoginRequest): Promise<"signed-in" | "not-needed"> {
      const config = remote(find(name).config);
      const reach = await (options.openFetch ?? fetchGuarded)(config);
      try {
        return await login({ ...more, config, store: signIn(config), fetch: reach.fetch });
      } finally {
        reach.close();
      }
    },
    /** Returns false when there was no sign-in. */
    logout: async (name: string): Promise<boolean> => signIn(remote(find(name).config)).remove(),
  };
}

interface Known {
  readonly config: McpServerConfig;
  /** With unexpanded variables, so that no value of theirs is shown. */
  readonly written: McpServerConfig;
  readonly state: ServerState;
  readonly item: PinnedItem<"mcp">;
}

export interface McpLoginRequest {
  readonly onAuthorize: (url: URL) => void;
  readonly signal: AbortSignal;
  readonly clientSecret?: string;
}

function viewOf({ config, written, state }: Known, pins: McpPins, signedIn: boolean | undefined): McpServerView {
  const { name, scope, source, transport } = config;
  const summary = summaryOf(pins, config);
  const tools = (pins.definitions(config) ?? []).map((definition) => ({
    name: visible(definition.name),
    state: pins.check(config, definition),
  }));
  return {
    name,
    scope,
    source,
    transport: transport.type,
    state,
    shown: shownServer(written),
    settings: settingsOf(written),
    ...defined({ signedIn, summary }),
    tools,
  };
}

function settingsOf({ transport, tools, timeoutMs, deferTools, filterMapping, sandbox, pluginName }: McpServerConfig) {
  const where =
    transport.type === "stdio"
      ? {
          command: transport.command,
          args: maskedArguments(transport.args),
          env: maskedValues(transport.environment),
          ...defined({ cwd: transport.cwd }),
        }
      : {
          url: maskedUrl(transport.url),
          headers: maskedValues(transport.headers),
          ...defined({ oauth: transport.oauth }),
        };
  return {
    ...where,
    tools,
    timeout: timeoutMs,
    ...defined({ deferTools, filterMapping, sandbox }),
    ...(pluginName && { pluginName }),
  };
}

async function checkServer(known: Known, options: McpAdministrationOptions, pins: McpPins): Promise<ServerCheck> {
  const { config, state } = known;
  if (state === "disabled") return { status: "disabled" };
  if (state !== "enabled") return { status: "not_configured", error: "it is not approved" };
  const probe = (await options.probe?.(config)) ?? { status: "pending" };
  if (probe.definitions) await pins.remember(config, probe.definitions);
  return probe;
}

/** Approval covers exactly what was shown, even if the server lists something else meanwhile. */
async function review(known: Known, options: McpAdministrationOptions, pins: McpPins): Promise<McpReview> {
  const { config, state, item } = known;
  if (state === "untrusted") {
    const hint = "Trust the folder first: start troupe in it, or use --trust-folder.";
    throw new TroupeError("usage", `${config.source} belongs to a folder that is not trusted.`, { hint });
  }
  const isEntry = state === "new" || state === "changed";
  const probe = isEntry || state === "disabled" ? undefined : await options.probe?.(config);
  const definitions = probe?.definitions ?? pins.definitions(config) ?? [];
  if (probe && !probe.definitions)
    throw new TroupeError("failed", `The tools of ${config.name} could not be listed: ${probe.error ?? probe.status}.`);
  const before = new Map(pins.approved(config).map((definition) => [definition.name, definition]));
  const open = definitions.filter((definition) => pins.check(config, definition) !== "ok");
  const tools = await Promise.all(
    open.map((definition) => {
      const old = before.get(definition.name);
      return old ? shownChange(old, definition) : shownDefinition(definition);
    }),
  );
  return {
    ...(isEntry && { entry: item.shown }),
    tools,
    async agree() {
      if (isEntry) await options.approveItem?.(item);
      if (probe?.definitions) await pins.remember(config, definitions);
      await pins.approve(config, open);
    },
  };
}

function remote(config: McpServerConfig): McpServerConfig {
  if (config.transport.type !== "stdio") return config;
  throw new TroupeError("usage", `${config.name} is not a remote server, so there is nowhere to sign in.`);
}

async function fetchGuarded(config: McpServerConfig) {
  const [{ guardedFetch }, { httpEndpoint }] = await Promise.all([
    import("../guarded-fetch.ts"),
    import("../http-endpoint.ts"),
  ]);
  return guardedFetch(httpEndpoint(config), () => undefined);
}
