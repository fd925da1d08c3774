import { resolve } from "node:path";
import type { Mode, Policy } from "../../permissions/policy.ts";
import { realPathOf } from "../../permissions/resolve-path.ts";
import type { Rule } from "../../permissions/rules.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { allowRule, clientRule } from "./policy.ts";

/** A rule as client programs write it. */
export interface WireRule {
  readonly kind: string;
  readonly argument: string | null;
}

/**
 * The rules of an open session, which its client may change: they hold from the next question on, for agents at work too. A
 * denial beats every allowance, whoever wrote it, and what a person ruled out in their settings cannot be switched on.
 */
export class LiveRules {
  /** Always as it is now. */
  readonly policy: Policy;
  /** Folders the tools may touch, the working folder first; empty = no limit. */
  readonly roots: string[];
  readonly #mode: { -readonly [K in keyof Mode]: Mode[K] };
  readonly #mayAllowAll: boolean;
  readonly #servers: readonly string[];
  #added: readonly Rule[] = [];
  #primary: string;

  constructor(base: Policy, options: { cwd: string; servers: readonly string[]; mayAllowAll: boolean }) {
    const added = (): readonly Rule[] => this.#added;
    this.roots = [...base.roots];
    this.#mode = { ...base.mode };
    this.#mayAllowAll = options.mayAllowAll;
    this.#servers = options.servers;
    this.#primary = options.cwd;
    this.policy = {
      ...base,
      mode: this.#mode,
      roots: this.roots,
      get rules() {
        return [...base.rules, ...added()];
      },
    };
  }

  get primary(): string {
    return this.#primary;
  }

  get allowsAll(): boolean {
    return this.#mode.allTools;
  }

  /** False where a person's settings rule it out. */
  setAllowAll(enabled: boolean): boolean {
    if (enabled && !this.#mayAllowAll) return false;
    this.#mode.allTools = enabled;
    return true;
  }

  setReads(how: "asked" | "allowed"): void {
    this.#mode.askReads = how === "asked";
    this.#mode.allReads = how === "allowed";
  }

  /** False where a person's settings rule it out. */
  setAllUrls(enabled: boolean): boolean {
    if (enabled && !this.#mayAllowAll) return false;
    this.#mode.allUrls = enabled;
    return true;
  }

  /** In place of what clients said before. */
  replaceRules(rules: { readonly approved: readonly WireRule[]; readonly denied: readonly WireRule[] }): void {
    this.#added = [
      ...rules.denied.map((rule) => clientRule(rule, "deny", this.#servers)),
      ...rules.approved.map((rule) => clientRule(rule, "allow", this.#servers)),
    ];
  }

  addRules(rules: readonly WireRule[]): void {
    this.#added = [...this.#added, ...rules.map((rule) => clientRule(rule, "allow", this.#servers))];
  }

  /** Returns why the text is no rule; undefined when it is one. */
  problemOf(text: string): string | undefined {
    try {
      allowRule(text, "a skill", this.#servers);
      return undefined;
    } catch (error) {
      if (error instanceof TroupeError) return error.message;
      throw error;
    }
  }

  /** Adds allow rules as people write them; each must be a rule. */
  allow(texts: readonly string[], source: string): void {
    this.#added = [...this.#added, ...texts.map((text) => allowRule(text, source, this.#servers))];
  }

  removeRules(rules: readonly WireRule[] | "all"): void {
    const gone =
      rules === "all" ? undefined : new Set(rules.map((rule) => clientRule(rule, "allow", this.#servers).text));
    this.#added = this.#added.filter(({ text, effect }) => effect !== "allow" || (gone && !gone.has(text)));
  }

  /** Real paths only: a link cannot be turned round later. */
  addFolder(path: string): void {
    const real = realPathOf(resolve(this.#primary, path), "/");
    if (this.roots.length === 0) return; // no limit already
    if (!this.roots.includes(real)) this.roots.push(real);
  }

  /** The folder that counts as the workspace in answers about paths; tools go on working where the session works. */
  setPrimary(path: string): void {
    this.addFolder(path);
    this.#primary = realPathOf(resolve(this.#primary, path), "/");
  }

  isWithin(path: string, where: "allowed" | "workspace"): boolean {
    const real = realPathOf(resolve(this.#primary, path), "/");
    if (where === "allowed" && this.roots.length === 0) return true;
    const folders = where === "workspace" ? [this.#primary] : this.roots;
    return folders.some((folder) => real === folder || real.startsWith(`${folder}/`));
  }
}
