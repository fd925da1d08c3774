/** Makes a random workspace with a home folder and a state root, and the attack on it. Everything follows from the seed. */
import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../../src/lib/protected-names.ts";
import type { Step, Swap } from "./attack-script.ts";
import { latin, raw, statOf } from "./host-view.ts";
import { type AttackPlan, below, plant, REPOSITORY, type World } from "./play.ts";
import { Random } from "./random.ts";

const NAMES = [
  ...["a", "b", "c", "src", "lib", "docs", "deep", "constructor", "node_modules"],
  ...["sp ace", "new\nline", "qu'ote", 'double"quote', "pi|pe", "back\\slash", "-dash", "*", "$(x)", "tab\t", "#h"],
  ...[latin("ünïcödé"), latin("日本"), "tty0", "null"],
];
const PROTECTED = [...PROTECTED_FOLDERS, ...PROTECTED_FILES, ...Object.keys(PROTECTED_PARTS)];
const PARTS = Object.entries(PROTECTED_PARTS).flatMap(([folder, parts]) => parts.map((part) => `${folder}/${part}`));
const INTERNALS = ["hooks", "config", "config.worktree", "info", "info/attributes", "commondir", "modules"];
const ENVIRONMENT = [".env", ".env.local", ".env.production"];
const STEPS: readonly Step["kind"][] = [
  ...(["repository", "repository with hooks", "commondir", "bare", "bare with commondir", "git file"] as const),
  ...(["git link", "unlistable", "unlistable hooks", "gitlink in index", "editor folder", "agent settings"] as const),
  "new config",
];

export interface Case {
  readonly world: World;
  readonly plan: AttackPlan;
}

export function makeCase(base: string, seed: number): Case {
  return new Maker(base, new Random(seed), seed).make();
}

class Maker {
  readonly #random: Random;
  readonly #base: string;
  readonly #root: string;
  readonly #home: string;
  readonly #state: string;
  readonly #canary: string;
  /** Relative to the workspace; "" is the workspace itself. */
  readonly #folders = [""];
  readonly #entries: string[] = [];
  readonly #pipes: string[] = [];
  readonly #modes: [path: string, mode: number][] = [];
  readonly #protected = new Set<string>();

  constructor(base: string, random: Random, seed: number) {
    this.#random = random;
    this.#base = base;
    this.#canary = `canary-${seed.toString(36)}-${Math.floor(random.next() * 1e9).toString(36)}`;
    const inHome = random.chance(0.25);
    this.#root = inHome ? `${base}/home/projects/work` : `${base}/${random.chance(0.2) ? "wo rk" : "work"}`;
    this.#home = !inHome && random.chance(0.1) ? `${this.#root}/people/me` : `${base}/home`;
    const inWork = random.chance(0.1);
    this.#state = inWork ? `${this.#root}/var/state` : random.chance(0.3) ? `${this.#home}/.troupe` : `${base}/state`;
  }

  make(): Case {
    const [random, root] = [this.#random, this.#root];
    this.#plantOutside();
    fs.mkdirSync(raw(root), { recursive: true });
    this.#plantGit();
    const count = 4 + random.below(16);
    for (let number = 0; number < count; number++) this.#plantSomething();
    if (this.#pipes.length > 0)
      spawnSync(
        "mkfifo",
        this.#pipes.map((path) => raw(path).toString("utf8")),
      );
    for (const name of [".git", ...PROTECTED, ...PARTS, ...INTERNALS.map((one) => `.git/${one}`)]) {
      this.#protected.add(`${root}/${name}`);
    }
    const writable = random.chance(0.2) ? [`${this.#state}/files`] : [];
    const swap = random.chance(0.25) ? this.#swaps() : [];
    const plan: AttackPlan = {
      protected: [...this.#protected].filter(() => random.chance(0.8)),
      outside: this.#outside(),
      steps: this.#steps(writable),
      swap,
    };
    for (const [path, mode] of this.#modes) fs.chmodSync(raw(path), mode);
    const untouched = [
      `${this.#base}/outside`,
      ...(this.#isInWork(this.#home) ? [] : this.#homeEntries()),
      this.#state,
    ];
    const world = {
      base: this.#base,
      roots: [root],
      home: this.#home,
      state: this.#state,
      untouched,
      canaries: [this.#canary],
      writable,
    };
    return { world, plan };
  }

  #isInWork(path: string): boolean {
    return path.startsWith(`${this.#root}/`);
  }

  /** The home folder without the workspace, if that lies in it. */
  #homeEntries(): string[] {
    return this.#root.startsWith(`${this.#home}/`)
      ? [".ssh", ".netrc", ".aws", ".config", ".bashrc"].map((name) => `${this.#home}/${name}`)
      : [this.#home];
  }

  #plantOutside(): void {
    plant(this.#base, { "outside/file": "text", "outside/folder/file": "text", "outside/.vscode/tasks.json": "mine" });
    plant(this.#home, { ".netrc": this.#canary, ".aws/credentials": this.#canary, ".bashrc": "mine" });
    if (!this.#isInWork(this.#home) || this.#random.chance(0.5)) plant(this.#home, { ".ssh/id": this.#canary });
    plant(this.#state, { token: this.#canary, "server/1.token": this.#canary, files: undefined });
    for (const path of [this.#home, this.#state].filter((one) => this.#isInWork(one))) {
      this.#folders.push(path.slice(this.#root.length + 1, path.lastIndexOf("/")));
    }
  }

  #outside(): string[] {
    const [base, home, state] = [this.#base, this.#home, this.#state];
    const secrets = [`${home}/.ssh/id`, `${home}/.netrc`, `${state}/token`, `${base}/outside/file`];
    return [
      ...secrets,
      `${home}/.ssh/authorized_keys`,
      `${home}/.ssh`,
      `${base}/outside`,
      ...(this.#isInWork(home) ? [] : [home]),
      state,
    ];
  }

  /** The repository at the top. */
  #plantGit(): void {
    const [random, root] = [this.#random, this.#root];
    const kind = random.below(10);
    if (kind < 6) this.#repository(".git");
    else if (kind === 6) {
      this.#repository("git store");
      plant(root, { ".git": random.chance(0.5) ? "-> git store" : `-> ${root}/git store` });
    } else if (kind === 7) this.#link(".git");
    else if (kind === 8) {
      this.#repository("separate");
      plant(root, { ".git": "gitdir: separate\n" });
    }
    if (kind < 6 && random.chance(0.4) && this.#isFree(".git/modules")) {
      plant(root, below(".git/modules/one", REPOSITORY));
      if (random.chance(0.5)) plant(root, below(".git/modules/one/modules/two", REPOSITORY));
      plant(root, { "one/.git": "gitdir: ../.git/modules/one\n" });
      for (const name of INTERNALS) this.#protected.add(`${root}/.git/modules/one/${name}`);
    }
  }

  /** A git folder, sometimes with parts missing or as links. */
  #repository(folder: string): void {
    plant(this.#root, below(folder, REPOSITORY));
    const random = this.#random;
    if (random.chance(0.5))
      plant(this.#root, { [`${folder}/hooks/pre-commit`]: "mine", [`${folder}/info/exclude`]: "" });
    if (random.chance(0.2)) this.#link(`${folder}/${random.pick(INTERNALS)}`);
    if (random.chance(0.1) && this.#isFree(`${folder}/info`)) plant(this.#root, { [`${folder}/info`]: "a file" });
    for (const name of INTERNALS) this.#protected.add(`${this.#root}/${folder}/${name}`);
  }

  #newPath(name = this.#random.chance(0.01) ? "bad\xff\xfe" : this.#random.pick(NAMES)): string {
    const folder = this.#random.pick(this.#folders);
    return folder === "" ? name : `${folder}/${name}`;
  }

  #isFree(path: string): boolean {
    return statOf(`${this.#root}/${path}`) === undefined;
  }

  #plantSomething(): void {
    const random = this.#random;
    const makers: [weight: number, make: () => void][] = [
      [5, () => this.#folder(this.#newPath())],
      [2, () => this.#file(this.#newPath())],
      [3, () => this.#link(this.#newPath())],
      [3, () => this.#environment()],
      [4, () => this.#protectedName()],
      [2, () => this.#nestedGit()],
      [1, () => this.#bare()],
      [1, () => this.#unlistable()],
      [0.5, () => this.#pipe()],
    ];
    let chosen = random.next() * makers.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of makers) {
      chosen -= weight;
      if (chosen < 0) {
        make();
        return;
      }
    }
  }

  #folder(path: string): void {
    if (!this.#isFree(path)) return;
    plant(this.#root, { [path]: undefined });
    this.#folders.push(path);
    this.#entries.push(path);
  }

  #file(path: string): void {
    if (!this.#isFree(path)) return;
    plant(this.#root, { [path]: "text" });
    this.#entries.push(path);
  }

  #link(path: string): void {
    if (!this.#isFree(path)) return;
    const [random, root] = [this.#random, this.#root];
    const inside = this.#entries.length > 0 ? random.pick(this.#entries) : "nothing";
    const places = [
      ...[`${root}/${inside}`, `${root}/${inside}`, `${root}/${inside}`, `${root}/missing`, `${root}/missing/x`],
      ...[`${this.#home}/.ssh`, `${this.#home}/.netrc`, this.#home, this.#state, `${this.#state}/token`],
      ...[`${this.#base}/outside`, `${this.#base}/outside/file`, `${root}/${path}`, `${root}/.github`, `${root}/.git`],
    ];
    const odd = [
      "/",
      "..",
      ".",
      "/proc/self/root",
      "/dev/null",
      `/oldroot${this.#home}/.ssh`,
      `/newroot${this.#home}/.ssh`,
    ];
    const target = random.chance(0.12) ? random.pick(odd) : this.#linkText(path, random.pick(places));
    plant(root, { [path]: `-> ${target}` });
    this.#entries.push(path);
  }

  /** Absolute, or relative with enough `..` to leave the workspace. */
  #linkText(path: string, target: string): string {
    if (this.#random.chance(0.4)) return target;
    const from = `${this.#root}/${path}`.slice(this.#base.length + 1);
    const up = "../".repeat(from.split("/").length - 1);
    return up + target.slice(this.#base.length + 1) || ".";
  }

  #environment(): void {
    const path = this.#newPath(this.#random.pick(ENVIRONMENT));
    if (!this.#isFree(path) || path.includes("node_modules")) return;
    if (this.#random.chance(0.3)) {
      const target = `${path}.values`.replace(/\.env/g, "live");
      if (!this.#isFree(target)) return;
      plant(this.#root, {
        [target]: this.#canary,
        [path]: this.#random.chance(0.5)
          ? `-> ${this.#root}/${target}`
          : `-> ${target.slice(target.lastIndexOf("/") + 1)}`,
      });
      this.#entries.push(target);
    } else plant(this.#root, { [path]: this.#canary });
  }

  #protectedName(): void {
    const random = this.#random;
    const path = this.#newPath(random.pick([...PROTECTED, ...PARTS]));
    if (!this.#isFree(path) || path.includes("node_modules")) return;
    this.#protected.add(`${this.#root}/${path}`);
    const kind = random.below(10);
    if (path.includes("/") && !this.#isFree(path.slice(0, path.lastIndexOf("/")))) {
      const above = statOf(`${this.#root}/${path.slice(0, path.lastIndexOf("/"))}`);
      if (!above?.isDirectory()) return;
    }
    if (kind < 3) plant(this.#root, { [`${path}/tasks.json`]: "mine", [`${path}/settings.json`]: "mine" });
    else if (kind < 5) plant(this.#root, { [path]: "mine" });
    else if (kind < 6) {
      plant(this.#root, { [`${path}/deep/.env`]: this.#canary });
    } else {
      const parent = path.slice(0, Math.max(path.lastIndexOf("/"), 0));
      plant(this.#root, { [parent === "" ? "." : parent]: undefined });
      this.#link(path);
    }
  }

  #nestedGit(): void {
    const folder = this.#newPath();
    if (!this.#isFree(folder)) return;
    this.#folder(folder);
    const kind = this.#random.below(6);
    if (kind < 3) this.#repository(`${folder}/.git`);
    else if (kind === 3) this.#link(`${folder}/.git`);
    else if (kind === 4 && this.#isFree("stores")) {
      this.#repository("stores");
      plant(this.#root, { [`${folder}/.git`]: `gitdir: ${this.#root}/stores\n` });
    } else plant(this.#root, { [`${folder}/.git`]: `gitdir: ${this.#base}/outside\n` });
    this.#protected.add(`${this.#root}/${folder}/.git`);
  }

  #bare(): void {
    const folder = this.#newPath();
    if (this.#isFree(folder)) this.#repository(folder);
  }

  #unlistable(): void {
    const folder = this.#newPath();
    if (!this.#isFree(folder) || folder.includes("node_modules")) return;
    // Root may list every folder, so that only what is found by name is hidden from it.
    plant(this.#root, {
      [`${folder}/.env`]: this.#canary,
      [`${folder}/x/.env`]: this.#canary,
      [`${folder}/y/.git/HEAD`]: REPOSITORY.HEAD,
    });
    this.#modes.push([`${this.#root}/${folder}`, this.#random.pick([0o000, 0o111, 0o311, 0o444, 0o644])]);
  }

  #pipe(): void {
    const path = this.#newPath(this.#random.pick(["pipe", ".env.pipe", ".envrc", "config"]));
    // A pipe is made by a program, whose arguments must be valid text.
    if (this.#isFree(path) && !path.includes("\xff") && !this.#pipes.includes(`${this.#root}/${path}`))
      this.#pipes.push(`${this.#root}/${path}`);
  }

  #steps(writable: readonly string[]): Step[] {
    const random = this.#random;
    return Array.from({ length: 1 + random.below(5) }, (_, number): Step => {
      const kind = random.pick(STEPS);
      const folder = random.pick(this.#folders);
      const within = folder === "" ? this.#root : `${this.#root}/${folder}`;
      const name =
        kind === "gitlink in index"
          ? `node_modules/made-${number}`
          : `made-${number}${random.chance(0.15) ? "\xff" : ""}`;
      const path =
        random.chance(0.15) && kind !== "gitlink in index" && folder !== ""
          ? within
          : `${kind === "gitlink in index" ? this.#root : within}/${name}`;
      const [own] = writable;
      const store =
        own !== undefined && random.chance(0.5) ? `${own}/store-${number}` : `${this.#root}/store-${number}`;
      return { kind, path, store };
    });
  }

  /** What a command that runs already may exchange: links, and what it has created since it began. */
  #swaps(): Swap[] {
    const random = this.#random;
    const links = [...this.#protected].filter((path) => statOf(path)?.isSymbolicLink());
    const made = (["folder", "file", "editor folder", "repository"] as const).map((make) => {
      const name = { folder: "plain", file: ".envrc", "editor folder": ".vscode", repository: ".git" }[make];
      return { path: `${this.#root}/swapped-${random.below(3)}/${name}`, make };
    });
    for (const { path } of made) fs.mkdirSync(raw(path.slice(0, path.lastIndexOf("/"))), { recursive: true });
    const places = [
      `${this.#home}/.ssh`,
      `${this.#home}/.ssh/id`,
      this.#state,
      `${this.#base}/outside`,
      `${this.#home}/.netrc`,
    ];
    return [...made, ...links.map((path) => ({ path, make: undefined }))].map(({ path, make }) => {
      const from = path.slice(this.#base.length + 1);
      const relative = "../".repeat(from.split("/").length - 1) + random.pick(places).slice(this.#base.length + 1);
      return { path, make, target: relative };
    });
  }
}
