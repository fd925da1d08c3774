/**
 * Enforces denials for shell commands independently of their text. The sandbox hides files that read rules deny, and
 * without network it reaches no address. If there is no sandbox, or not every denied file can be found, the permission
 * layer is informed and asks instead.
 */
import { existsSync } from "node:fs";
import { DeniedFileFinder, type DeniedFiles, readDenials } from "../../permissions/denied-files.ts";
import { isStoredByGit } from "../../permissions/git-stored.ts";
import { linkedPaths } from "../../permissions/linked-paths.ts";
import { isBelow } from "../../permissions/path-scope.ts";
import type { ConfinedCall, Containment, Policy } from "../../permissions/policy.ts";
import type { Rule } from "../../permissions/rules.ts";
import type { PreparedSandbox, Sandbox } from "../../tools/shell/sandbox/sandbox.ts";
import { ToolError } from "../../tools/tool-error.ts";

interface ContainmentOptions {
  /** If it has a containment of its own, from the policy of another folder, that one's files are hidden too. */
  readonly policy: Policy;
  readonly cwd: string;
  /** "auto": in a sandbox if available. "required": only in a sandbox. "off": never in a sandbox. */
  readonly mode: "auto" | "required" | "off";
  /** Whether sandboxed commands reach any address. */
  readonly network: boolean;
  sandbox(): Promise<Sandbox>;
}

/** The protections that do not hold without the sandbox, in words for the user. */
const WITHOUT_SANDBOX =
  "Without it credentials and .env files can be read, protected files and denied paths are only protected as far as the " +
  "text of a command shows, the network is open, and Unix sockets of this machine can be reached. See docs/explanation/sandbox.md.";
const BWRAP_PATHS = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/** Returns why commands will run without a sandbox, judging by file names only; undefined if they probably will not. */
export function missingSandbox(mode: ContainmentOptions["mode"]): string | undefined {
  if (mode !== "auto") return undefined;
  const isMissing = process.platform !== "linux" || !BWRAP_PATHS.some((path) => existsSync(path));
  return isMissing ? `Commands run without a sandbox: bubblewrap is not installed. ${WITHOUT_SANDBOX}` : undefined;
}

/** The containment of one working directory. */
export class ShellContainment implements Containment {
  readonly #options: ContainmentOptions;
  readonly #files: DeniedFileFinder;
  /** Paths that every shell started so far hides; undefined before the first. */
  #hiddenByAll: ReadonlySet<string> | undefined;
  #repositories: readonly string[] = [];
  /** True if the last answer was that denied files are hidden. */
  #hidesDeniedFiles = false;
  /** True if a command could not be put into the sandbox. */
  #couldNotConfine = false;
  /** Calls that must run without write access. */
  readonly #readOnly = new Set<string>();

  constructor(options: ContainmentOptions) {
    this.#options = options;
    this.#files = new DeniedFileFinder(options.policy, options.cwd);
  }

  get warning(): string | undefined {
    return missingSandbox(this.#options.mode);
  }

  async enforced(command: {
    readonly shellId?: string;
    readonly unsandboxed?: boolean;
  }): Promise<(rule: Rule) => boolean> {
    this.#hidesDeniedFiles = false;
    if (command.unsandboxed || !(await this.#works())) return () => false;
    const hidden = await this.#hides(command);
    this.#hidesDeniedFiles = hidden;
    return ({ target }) => (target.kind === "read" && hidden) || (target.kind === "url" && !this.#options.network);
  }

  async confines(command: { readonly shellId?: string; readonly unsandboxed?: boolean }): Promise<boolean> {
    // A shell that was used before may run other programs under the same names by now.
    if (command.unsandboxed || command.shellId !== undefined || this.#options.network) return false;
    return (await this.#works()) && (await this.#hides(command));
  }

  readOnly(call: ConfinedCall): void {
    this.#readOnly.add(keyOf(call));
    for (const oldest of this.#readOnly) {
      if (this.#readOnly.size <= MAX_READ_ONLY) break;
      this.#readOnly.delete(oldest);
    }
  }

  isReadOnly(call: ConfinedCall): boolean {
    return this.#readOnly.has(keyOf(call));
  }

  async files(): Promise<DeniedFiles> {
    const own = await this.#files.find();
    const outer = await this.#options.policy.containment?.files();
    if (outer === undefined) return own;
    return {
      paths: [...new Set([...own.paths, ...outer.paths])],
      complete: own.complete && outer.complete,
      repositories: [...new Set([...own.repositories, ...outer.repositories])],
    };
  }

  stored({ target }: Rule): boolean {
    if (target.kind !== "read" || target.path === undefined) return false;
    const { gitFolders } = linkedPaths(this.#repositories);
    return isStoredByGit(target.path, [...new Set([...this.#options.policy.protectedPaths.gitFolders, ...gitFolders])]);
  }

  /** Returns the sandbox, in which denied files are hidden. */
  async sandbox(): Promise<Sandbox> {
    const inner = await this.#options.sandbox();
    return {
      records: inner.records,
      probe: () => inner.probe(),
      sweep: () => inner.sweep(),
      close: () => inner.close(),
      prepare: async (request) => {
        const promised = this.#hidesDeniedFiles || request.required === true;
        const { paths, complete } = await this.#hidable();
        if (promised && !complete) throw notHidden("not every denied file could be found before the command");
        const prepared = await inner.prepare({ ...request, denied: [...(request.denied ?? []), ...paths] });
        if (prepared.kind === "plain") return request.unsandboxed ? prepared : this.#plain(prepared, promised);
        const before = this.#hiddenByAll;
        this.#hiddenByAll = new Set(before === undefined ? paths : paths.filter((path) => before.has(path)));
        return prepared;
      },
    };
  }

  #plain(prepared: Extract<PreparedSandbox, { kind: "plain" }>, promised: boolean): PreparedSandbox {
    this.#couldNotConfine = true;
    if (promised && readDenials(this.#options.policy).length > 0)
      throw notHidden("there is no sandbox to hide them in");
    // The notice at the start already reported what file names show.
    if (prepared.warning === undefined || this.warning !== undefined) return prepared;
    return { ...prepared, warning: `${prepared.warning} ${WITHOUT_SANDBOX}` };
  }

  async #works(): Promise<boolean> {
    if (this.#options.mode === "off" || this.#couldNotConfine) return false;
    return (await (await this.#options.sandbox()).probe()).available;
  }

  /**
   * Returns the denied files that can be hidden. The sandbox hides the state root as a whole and reopens worktrees in
   * it. It cannot hide single files there, so these count as not found.
   */
  async #hidable(): Promise<DeniedFiles> {
    const found = await this.files();
    const { stateRoot } = this.#options.policy.protectedPaths;
    return { ...found, complete: found.complete && !found.paths.some((path) => isBelow(path, [stateRoot])) };
  }

  /** Returns whether denied files are hidden. A running shell hides only files that were denied when it started. */
  async #hides({ shellId }: { readonly shellId?: string }): Promise<boolean> {
    const { paths, complete, repositories } = await this.#hidable();
    this.#repositories = repositories;
    const before = this.#hiddenByAll;
    return complete && (shellId === undefined || before === undefined || paths.every((path) => before.has(path)));
  }
}

const MAX_READ_ONLY = 1000;

/** Includes the command, because agents of one folder share a containment and call ids may repeat. */
const keyOf = ({ toolCallId, command }: ConfinedCall): string => `${toolCallId}\n${command}`;

function notHidden(why: string): ToolError {
  const message = `A rule denies reading some files, and ${why}. Nothing was run.`;
  return new ToolError(message, { code: "denied" });
}
