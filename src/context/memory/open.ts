/** Opens the memory of a session according to the user's settings. */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { openJournal } from "./journal.ts";
import { type LocalMemory, localMemory } from "./local.ts";
import type { MemoryPorts, MemoryStore } from "./memory.ts";
import { type Optimise, repositoryFileMemory } from "./repository-file.ts";
import { type ServicePrompts, serviceMemory } from "./service.ts";
import { repositorySpaces, userSpace } from "./space.ts";

/** `memory` in the user's settings; project settings do not count. `true` and `false` are short for `enabled`. */
const MemorySettings = z.lazy(() =>
  z.preprocess(
    (value) => (typeof value === "boolean" ? { enabled: value } : value),
    z.strictObject({
      enabled: z.boolean().exactOptional(),
      /** The store: under the home, also in a file of the repository, or a service. */
      store: z.enum(["local", "repository-file", "service"]).exactOptional(),
      url: z.string().max(2000).exactOptional(),
      /** The environment variable with the service's token. */
      tokenVariable: z.string().max(200).exactOptional(),
      /** Whether the service also stores facts about the user. */
      userScope: z.boolean().exactOptional(),
      /** Whether the service is only used with a repository. */
      needsRepository: z.boolean().exactOptional(),
      /** Whether a model merges duplicate facts when the repository's file is written. */
      merge: z.boolean().exactOptional(),
    }),
  ),
);
export type MemorySettings = z.infer<typeof MemorySettings>;

export function parseMemorySettings(value: Json | undefined): MemorySettings {
  const parsed = MemorySettings.safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  throw new TroupeError("configuration", `memory in your settings is not usable: ${z.prettifyError(parsed.error)}`);
}

export interface OpenMemoryOptions {
  readonly settings: MemorySettings;
  readonly stateRoot: string;
  readonly cwd: string;
  /** Whether the user trusts the folder. Only then its origin URL counts. */
  readonly isTrusted: boolean;
  /** `owner/name` and the root of the work tree, if any. */
  readonly repository?: string;
  readonly gitRoot?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly ports: MemoryPorts;
  readonly optimise?: Optimise;
  /** Cached replies of the service, shared by all sessions of the process. */
  readonly prompts?: ServicePrompts;
}

/** Returns the store without reading it. Throws a `TroupeError` when a service's URL is invalid. */
export function openMemory(options: OpenMemoryOptions): MemoryStore {
  const { settings, environment, ports, repository, gitRoot, optimise, prompts } = options;
  const { store = "local" } = settings;
  if (store === "service") {
    const token = settings.tokenVariable && environment[settings.tokenVariable];
    return serviceMemory({
      url: settings.url ?? "",
      ...(token && { token }),
      ...defined({ repository }),
      hasUserScope: settings.userScope ?? false,
      needsRepository: settings.needsRepository ?? false,
      ...defined({ prompts }),
      ...ports,
    });
  }
  const local = openLocalMemory(options);
  if (store === "local" || gitRoot === undefined) return local;
  return repositoryFileMemory({ root: gitRoot, local, ports, ...defined({ optimise }) });
}

/** Returns the memory under the home: facts of the repository first, then those of the user. */
export function openLocalMemory(
  options: Pick<OpenMemoryOptions, "stateRoot" | "cwd" | "isTrusted" | "ports">,
): LocalMemory {
  const { stateRoot, cwd, isTrusted, ports } = options;
  const spaces = repositorySpaces(cwd, { isTrusted });
  return localMemory(
    [
      ...spaces.map((space) => openJournal({ stateRoot, space, scope: "repository", ports })),
      openJournal({ stateRoot, space: userSpace, scope: "user", ports }),
    ],
    ports,
  );
}
