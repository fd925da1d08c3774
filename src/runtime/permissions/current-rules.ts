import { resolve } from "node:path";
import type { Allowances, Policy } from "../../permissions/policy.ts";
import { realPathOf } from "../../permissions/resolve-path.ts";
import type { Rule } from "../../permissions/rules.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { allowRule, clientRule } from "./policy.ts";

/** A rule in the form of client programs. */
export interface WireRule {
  readonly kind: string;
  readonly argument: string | null;
}

/**
 * The rules of an open session, which its client may change. Changes apply from the next decision on, also for working
 * agents. A denial wins over every allow rule. A client cannot enable what the user's settings rule out.
 */
export class CurrentRules {
  /** Always reflects the current rules. */
  readonly policy: Policy;
  /** Folders the tools may access, the working directory first; empty means no limit. */
  readonly roots: string[];
  readonly #allowances: { -readonly [K in keyof Allowances]: Allowances[K] };
  readonly #mayAllowAll: boolean;
  readonly #servers: readonly string[];
  #added: readonly Rule[] = [];
  #primary: string;

  constructor(base: Policy, options: { cwd: string; servers: readonly string[]; mayAllowAll: boolean }) {
    const added = (): readonly Rule[] => this.#added;
    this.roots = [...base.roots];
    this.#allowances = { ...base.allowances };
    this.#mayAllowAll = options.mayAllowAll;
    this.#servers = options.servers;
    this.#primary = options.cwd;
    this.policy = {
      ...base,
      allowances: this.#allowances,
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
    return this.#allowances.allTools;
  }

  /** Returns false if the user's settings rule it out. */
  setAllowAll(enabled: boolean): boolean {
    if (enabled && !this.#mayAllowAll) return false;
    this.#allowances.allTools = enabled;
    return true;
  }

  setReads(mode: "asked" | "allowed"): void {
    this.#allowances.askReads = mode === "asked";
    this.#allowances.allReads = mode === "allowed";
  }

  /** Returns false if the user's settings rule it out. */
  setAllUrls(enabled: boolean): boolean {
    if (enabled && !this.#mayAllowAll) return false;
    this.#allowances.allUrls = enabled;
    return true;
  }

  /** Replaces all earlier rules of clients. */
  replaceRules(rules: { readonly approved: readonly WireRule[]; readonly denied: readonly WireRule[] }): void {
    this.#added = [
      ...rules.denied.map((rule) => clientRule(rule, "deny", this.#servers)),
      ...rules.approved.map((rule) => clientRule(rule, "allow", this.#servers)),
    ];
  }

  addRules(rules: readonly WireRule[]): void {
    this.#added = [...this.#added, ...rules.map((rule) => clientRule(rule, "allow", this.#servers))];
  }

  /** Returns why the text is not a rule; undefined if it is one. */
  problemOf(text: string): string | undefined {
    try {
      allowRule(text, "a skill", this.#servers);
      return undefined;
    } catch (error) {
      if (error instanceof TroupeError) return error.message;
      throw error;
    }
  }

  /** Adds allow rules as users write them. Throws if a text is not a rule. */
  allow(texts: readonly string[], source: string): void {
    this.#added = [...this.#added, ...texts.map((text) => allowRule(text, source, this.#servers))];
  }

  removeRules(rules: readonly WireRule[] | "all"): void {
    const gone =
      rules === "all" ? undefined : new Set(rules.map((rule) => clientRule(rule, "allow", this.#servers).text));
    this.#added = this.#added.filter(({ text, effect }) => effect !== "allow" || (gone && !gone.has(text)));
  }

  /** Adds the real path, so that changing a link later has no effect. */
  addFolder(path: string): void {
    const real = realPathOf(resolve(this.#primary, path), "/");
    if (this.roots.length === 0) return; // no limit already
    if (!this.roots.includes(real)) this.roots.push(real);
  }

  /** Sets the folder that counts as the workspace in path checks. Tools keep the session's working directory. */
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
