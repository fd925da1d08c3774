/**
 * Weaknesses that someone could bring in by one changed line. Each is put into a copy of the built program; the case that
 * watches must turn red. Those marked `control` have no switch: the control run uses a program built with them.
 */
export interface Weakness {
  readonly id: string;
  /** The attack that must notice. */
  readonly watcher: string;
  readonly changes: readonly Change[];
  readonly control?: true;
}

interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const change = (file: string, from: string, to: string): readonly Change[] => [{ file, from, to }];

export const weaknesses: readonly Weakness[] = [
  {
    id: "trusts-every-folder",
    watcher: "A01",
    changes: change("src/catalog/trust.ts", "if (forRun) return", "if (forRun || true) return"),
  },
  {
    id: "sets-any-variable",
    watcher: "A03",
    changes: change("src/catalog/dotenv.ts", "if (isRefusedName(name))", "if (false)"),
  },
  {
    id: "approves-without-arguments",
    watcher: "A05",
    changes: change(
      "src/tools/mcp/config/config-pin.ts",
      '["stdio", transport.command, transport.args, ',
      '["stdio", transport.command, ',
    ),
  },
  {
    id: "no-limit-of-analysis",
    watcher: "B02",
    changes: change("src/permissions/decide-shell.ts", "if (analysis.exceeded !== undefined) {", "if (false) {"),
  },
  {
    id: "blind-to-substitutions",
    watcher: "B03",
    changes: change(
      "src/permissions/shell/collect.ts",
      "if (word.parts !== undefined) this.#parts(word, nesting);",
      "",
    ),
  },
  {
    id: "no-unwrapping",
    watcher: "B06",
    changes: change(
      "src/permissions/shell/collect.ts",
      "const unwrapped = unwrap(words);",
      "const unwrapped = undefined as ReturnType<typeof unwrap>;",
    ),
  },
  {
    id: "allow-all-beats-deny",
    watcher: "B16",
    changes: change(
      "src/permissions/decide-shell.ts",
      "  return (\n    refusal(shell) ??",
      "  return (\n    (policy.allowances.allTools ? allowance(shell) : undefined) ??\n    refusal(shell) ??",
    ),
  },
  {
    // Two walls stand here, and either is enough.
    id: "compares-names-only",
    watcher: "C02",
    changes: [
      ...change(
        "src/lib/node/paths.ts",
        "!isInside(realPath, scope.roots)) throw",
        "!isInside(asked, scope.roots)) throw",
      ),
      ...change("src/permissions/resolve-path.ts", "path: fs.realpathSync.native(whole),", "path: whole,"),
    ],
  },
  {
    id: "checks-by-name",
    watcher: "C04",
    changes: change(
      "src/lib/node/paths.ts",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source code
      "child: (leaf) => `${pinned}/${leaf}`,",
      "child: (leaf) => join(path, leaf),",
    ),
  },
  {
    id: "protects-no-names",
    watcher: "C09",
    changes: change(
      "src/permissions/protected-paths.ts",
      "  const folded = caseFold(path);\n",
      "  const folded = caseFold(path);\n  if (folded !== protectedPaths.stateRoot) return undefined;\n",
    ),
  },
  {
    id: "keeps-capabilities",
    watcher: "D01",
    changes: change("src/tools/shell/sandbox/sandbox-entry.ts", ', "--cap-drop", "ALL"]', "]"),
  },
  {
    id: "launcher-with-whole-environment",
    watcher: "D02",
    changes: change(
      "src/tools/shell/start-shell.ts",
      "...childEnvironment(environment, additions),",
      "...(process.env as Record<string, string>),",
    ),
  },
  {
    id: "no-filter-of-calls",
    watcher: "D03",
    changes: change(
      "src/tools/shell/sandbox/sandbox-entry.ts",
      '...["--seccomp", String(filterDescriptor), "--"],',
      '...["--"],',
    ),
  },
  {
    id: "network-always",
    watcher: "D04",
    changes: change(
      "src/tools/shell/sandbox/sandbox-entry.ts",
      '...(options.network === true ? ["--share-net"] : [])',
      '"--share-net"',
    ),
  },
  {
    id: "writable-hooks-of-git",
    watcher: "D05",
    changes: change("src/tools/shell/sandbox/sandbox-profile.ts", '    this.#readOnly(join(git, "hooks"));\n', ""),
  },
  {
    id: "links-left-alone",
    watcher: "D05-links",
    changes: change(
      "src/tools/shell/sandbox/sandbox-profile.ts",
      '    this.links.push({ path, target: linkText(path), end: identityOf(path), real: target ?? "" });\n',
      "",
    ),
  },
  {
    id: "mounts-targets-of-links",
    watcher: "D20",
    changes: change(
      "src/tools/shell/sandbox/sandbox-profile.ts",
      "if (!isInside(target, roots) || isInside(target, this.#hidden)) return;",
      'this.add({ kind: "bind", path: target, unchecked: true });\n    return;',
    ),
  },
  {
    // Two walls stand here, and either is enough.
    id: "believes-paths-of-mounts",
    watcher: "D21",
    changes: [
      ...change(
        "src/tools/shell/sandbox/sandbox-entry.ts",
        'mountCheck(plan.mounts, ["/dev", "/proc"]) : "";',
        'mountCheck(plan.mounts, ["/dev", "/proc"]).slice(0, 0) : "";',
      ),
      ...change(
        "src/tools/shell/sandbox/sandbox-entry.ts",
        "isFixed: mountPoints.fixedPaths(),",
        "isFixed: () => true,",
      ),
    ],
  },
  {
    id: "leaves-new-repositories",
    watcher: "D23",
    changes: change(
      "src/tools/shell/sandbox/clean-up/checking-trees.ts",
      "(!isPackage(target) || isNamed(target))) checkGit(target);",
      "(!isPackage(target) || isNamed(target))) continue;",
    ),
  },
  {
    id: "forgets-packages",
    watcher: "D23",
    changes: change(
      "src/tools/shell/sandbox/named-repositories.ts",
      "undefined : repositoriesIn(path)",
      "undefined : repositoriesIn(path)?.slice(0, 0)",
    ),
  },
  {
    id: "leaves-links-of-git",
    watcher: "D26",
    changes: change(
      "src/tools/shell/sandbox/clean-up/checking-trees.ts",
      "(!isPackage(link) || isNamed(link))) removeLink(link);",
      "(!isPackage(link) || isNamed(link))) continue;",
    ),
  },
  {
    id: "shares-configuration",
    watcher: "D27",
    changes: change("src/tools/shell/sandbox/clean-up/checking-git.ts", "    else unshare(file, text);\n", ""),
  },
  {
    id: "hides-one-name",
    watcher: "D27",
    changes: change("src/tools/shell/sandbox/sandbox-entry.ts", ", ...roots.alsoHidden]", "]"),
  },
  {
    id: "kill-undoes-nothing",
    watcher: "D23-kill",
    changes: change(
      "src/tools/shell/start-shell.ts",
      'const undone = prepared.kind === "sandboxed" ? base.watchdog.keep(prepared.left) : undefined;',
      "const undone = undefined as (() => void) | undefined;",
    ),
  },
  {
    id: "lets-folders-of-secrets-move",
    watcher: "D24",
    changes: change(
      "src/tools/shell/sandbox/sandbox-profile.ts",
      "for (const folder of above.filter(",
      "for (const folder of above.slice(above.length).filter(",
    ),
  },
  {
    id: "any-family-of-sockets",
    watcher: "D25",
    changes: change(
      "src/tools/shell/sandbox/seccomp.ts",
      "      refuse(EAFNOSUPPORT),\n    ]),\n    // A stream",
      "      allow(),\n    ]),\n    // A stream",
    ),
  },
  {
    id: "required-means-auto",
    watcher: "D13",
    changes: change(
      "src/tools/shell/sandbox/sandbox.ts",
      '  if (mode === "required") {\n',
      '  if (mode === ("never" as string)) {\n',
    ),
  },
  {
    id: "leaves-by-mode",
    watcher: "D15",
    changes: change(
      "src/permissions/decide.ts",
      '    case "sandbox-off":\n      return { decision: "ask"',
      '    case "sandbox-off":\n      if (allowances.allTools) return allow("mode", "every tool is allowed");\n      return { decision: "ask"',
    ),
  },
  {
    id: "children-inherit",
    watcher: "E01",
    changes: change(
      "src/lib/node/child-environment.ts",
      "if (passes && !looksSecret(name) && isUsable(value))",
      "if (value !== undefined && (passes || true))",
    ),
  },
  {
    id: "log-without-redaction",
    watcher: "E02",
    control: true,
    changes: change(
      "src/session/event-log.ts",
      "this.#redactor = options.redactor && createEventRedactor(options.redactor);",
      "this.#redactor = undefined;",
    ),
  },
  {
    id: "shows-text-as-it-is",
    watcher: "I01",
    control: true,
    changes: change(
      "src/lib/text.ts",
      "  if (!NOT_PLAIN.test(text) || !HARMFUL.test(text)) return text;\n",
      "  if (NOT_PLAIN || HARMFUL) return text;\n",
    ),
  },
  {
    id: "tools-never-change",
    watcher: "F02",
    changes: change(
      "src/tools/mcp/config/pins.ts",
      'return pinned.hash === definitionHash(definition) ? "ok" : "changed";',
      'return definitionHash(definition) === "" ? "changed" : "ok";',
    ),
  },
  {
    id: "sends-secrets",
    watcher: "H02",
    changes: change(
      "src/lib/redact/redact.ts",
      "return holdsValue(text, { find, forms });",
      "return forms.length > 1e9 && holdsValue(text, { find, forms });",
    ),
  },
  {
    id: "fetches-from-inside",
    watcher: "H02",
    changes: change(
      "src/tools/web/target.ts",
      "if (reason !== undefined) throw notFetchedError(url, literal",
      "if (reason === '') throw notFetchedError(url, literal",
    ),
  },
  {
    id: "own-rules-unprotected",
    watcher: "H05",
    changes: [
      ...change(
        "src/permissions/protected-paths.ts",
        'if (own === undefined && isBelow(protectedPaths.stateRoot)) return "deny";',
        "if (isBelow(protectedPaths.stateRoot)) return undefined;",
      ),
    ],
  },
  {
    id: "agents-beyond-their-parent",
    watcher: "H07",
    changes: [
      ...change(
        "src/agents/effective-tools.ts",
        "new Set(parentTools.filter(has))",
        'new Set([...parentTools, "bash", "create"])',
      ),
      ...change(
        "src/runtime/setup/tool-choice.ts",
        "  return tools.filter(\n    (tool) =>\n      (available",
        "  return tools.filter(\n    (tool) => true ||\n      (available",
      ),
    ],
  },
  {
    id: "settings-of-the-sandbox-forgotten",
    watcher: "D13-settings",
    changes: change(
      "src/runtime/setup/tool-backends.ts",
      "shared.sandboxes.get(network, requested.sandbox)",
      "shared.sandboxes.get(network)",
    ),
  },
  {
    id: "looks-three-folders-deep",
    watcher: "D05-env",
    changes: change(
      "src/tools/shell/sandbox/sandbox-scan.ts",
      "if (!entry.isDirectory()) return false;",
      'if (!entry.isDirectory() || entry.name === "d") return false;',
    ),
  },
  {
    id: "options-that-run-something",
    watcher: "B09-options",
    changes: change(
      "src/permissions/shell/programs.ts",
      "escapes: escapesByOption(name, args) }",
      "escapes: escapesByOption(name, args) && args.length > 1e9 }",
    ),
  },
  {
    id: "hooks-outlive-us",
    watcher: "K01",
    control: true,
    changes: change(
      "src/runtime/permissions/programs.ts",
      "watchdog.watch(pid);",
      "group = watchdog ? pid : undefined;",
    ),
  },
  {
    id: "git-as-configured",
    watcher: "J01",
    changes: change("src/lib/node/git.ts", "GIT_CONFIG_COUNT: String(overrides.length),", 'GIT_CONFIG_COUNT: "0",'),
  },
];
