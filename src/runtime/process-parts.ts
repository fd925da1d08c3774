import type { Settings } from "../catalog/settings/settings-schema.ts";
import type { ServicePrompts } from "../context/memory/service.ts";
import { defined } from "../lib/defined.ts";
import type { Disk } from "../lib/node/disk.ts";
import { isInside } from "../lib/node/paths.ts";
import type { PrepareProgram } from "../lib/node/program.ts";
import { createRedactor, type Redactor } from "../lib/redact/redact.ts";
import { secretValuesOf } from "../lib/redact/redact-values.ts";
import type { McpPins } from "../tools/mcp/config/pins.ts";
import type { McpConnections } from "../tools/mcp/connections.ts";
import type { ToolSearch, ToolSearchOptions } from "../tools/mcp/search.ts";
import type { McpServerConfig } from "../tools/mcp/server.ts";
import type { Tool } from "../tools/tool.ts";
import { programGuard, programPreparer } from "./permissions/programs.ts";
import type { RequestedSandbox } from "./permissions/sandbox-settings.ts";
import { type SandboxSource, sandboxSource } from "./permissions/shells.ts";
import { version } from "./version.ts";

/** Resources shared by all sessions of a process. Each is created when the first session needs it. */
export interface ProcessParts {
  readonly sandboxes: SandboxSource;
  /** Returns how to start hooks and MCP servers of a workspace. */
  programs(workspace: readonly string[], how: ProgramsOf): PrepareProgram;
  connections(): Promise<McpConnections>;
  pins(onNotice: (message: string) => void): Promise<McpPins>;
  redactor(extraNames: readonly string[]): Redactor;
  /** Adds a secret, such as a provider's key, to all redactors. */
  addSecret(value: string, name: string): void;
  /** Cached prompts of memory services. */
  readonly memoryPrompts: ServicePrompts;
  searchFor(
    settings: Settings["toolSearch"],
    memory: Pick<ToolSearchOptions, "found" | "onFound">,
  ): Promise<((tools: readonly Tool[]) => ToolSearch) | undefined>;
  close(): Promise<void>;
}

interface ProgramsOf {
  readonly requested: RequestedSandbox;
  onWarning(message: string): void;
}

/**
 * Returns the OAuth client with the user's stored sign-in. If that is not enough, connecting fails with advice for the
 * user.
 */
async function signIn(config: McpServerConfig, { disk, stateRoot }: { disk: Disk; stateRoot: string }) {
  if (config.transport.type === "stdio") return undefined;
  const { sessionSignIn } = await import("../tools/mcp/oauth/oauth.ts");
  const { fileSignIn } = await import("../tools/mcp/oauth/oauth-store.ts");
  return sessionSignIn({ config, store: fileSignIn({ disk, stateRoot, config }) });
}

const byLength = (one: string, other: string): number => one.length - other.length;

export function processParts(options: {
  environment: Readonly<Record<string, string | undefined>>;
  stateRoot: string;
  disk: Disk;
}): ProcessParts {
  const { environment, stateRoot, disk } = options;
  const sandboxes = sandboxSource({ environment, stateRoot, disk });
  let connections: Promise<McpConnections> | undefined;
  let pins: Promise<McpPins> | undefined;
  const openPins = (onNotice?: (message: string) => void): Promise<McpPins> => {
    pins ??= import("../tools/mcp/config/pins.ts").then((module) =>
      module.openPins({ disk, stateRoot, ...defined({ onNotice }) }),
    );
    return pins;
  };
  const { programs, serverPrograms, stopGuard } = sharedPrograms({ sandboxes, stateRoot, disk });
  return {
    sandboxes,
    programs,
    connections() {
      connections ??= import("../tools/mcp/connections.ts").then(
        ({ McpConnections: Connections }) =>
          new Connections({
            version,
            cwd: process.cwd(),
            environment,
            prepare: serverPrograms,
            authProvider: (config) => signIn(config, options),
            probes: {
              isIgnored: async (config) => (await openPins()).ignoresProbe(config),
              wasIgnored: async (config) => (await openPins()).probeIgnored(config).catch(() => undefined),
            },
          }),
      );
      return connections;
    },
    pins: openPins,
    ...sharedRedactors(environment),
    memoryPrompts: new Map(),
    searchFor,
    async close() {
      await (await connections)?.close();
      await sandboxes.close();
      await stopGuard();
    },
  };
}

/** Makes the redactors of sessions, and adds secrets to those of open sessions. */
function sharedRedactors(environment: Readonly<Record<string, string | undefined>>) {
  // Weak references: a closed session's redactor can be collected; only live ones need new secrets.
  const redactors = new Set<WeakRef<Redactor>>();
  const gone = new FinalizationRegistry<WeakRef<Redactor>>((reference) => redactors.delete(reference));
  const secrets: { value: string; name: string }[] = [];
  return {
    redactor(extraNames: readonly string[]): Redactor {
      const redactor = createRedactor({ values: [...secretValuesOf(environment, extraNames), ...secrets] });
      const reference = new WeakRef(redactor);
      redactors.add(reference);
      gone.register(redactor, reference);
      return redactor;
    },
    addSecret(value: string, name: string): void {
      if (secrets.some((secret) => secret.value === value)) return;
      secrets.push({ value, name });
      for (const redactor of redactors) redactor.deref()?.add(value, name);
    },
  };
}

const searchFor: ProcessParts["searchFor"] = async (settings, memory) => {
  if (settings?.enabled === false) return undefined;
  const { toolSearch } = await import("../tools/mcp/search.ts");
  const { threshold } = settings ?? {};
  return (tools) =>
    toolSearch({
      tools,
      ...defined({ threshold }),
      defer: ({ origin, deferral }) => deferral ?? (origin ? "auto" : "never"),
      ...memory,
    });
};

/** Prepares programs for all sessions: hooks with the session's settings, MCP servers with those of their folder. */
function sharedPrograms(shared: { sandboxes: SandboxSource; stateRoot: string; disk: Disk }) {
  const requestedOf = new Map<string, RequestedSandbox>();
  const { guard, stopGuard } = programGuard(shared.stateRoot);
  const preparer = (workspace: readonly string[], { requested, onWarning }: ProgramsOf): PrepareProgram =>
    programPreparer({
      ...shared,
      workspace,
      guard,
      onWarning,
      settings: requested.sandbox,
      limits: requested.limits,
    });
  const programs: ProcessParts["programs"] = (workspace, how) => {
    for (const folder of workspace) requestedOf.set(folder, how.requested);
    return preparer(workspace, how);
  };
  /** Sessions share servers, so the server's folder decides whose settings apply. */
  const serverPrograms: PrepareProgram = (request) => {
    const folder = [...requestedOf.keys()]
      .filter((root) => isInside(request.cwd, [root]))
      .sort(byLength)
      .at(-1);
    const requested = requestedOf.get(folder ?? "") ?? [...requestedOf.values()].at(-1) ?? { sandbox: {}, limits: {} };
    return preparer([], { requested, onWarning: () => undefined })(request);
  };
  return { programs, serverPrograms, stopGuard };
}
