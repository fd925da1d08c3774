/**
 * Every protected name as a link of every kind: a command reads nothing through it, writes nothing through it, and
 * leaves nothing under it that would run later. The names of one kind share a workspace, so that few starts are needed.
 */
import { afterAll, describe, expect, it } from "vitest";
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../../src/lib/protected-names.ts";
import type { Swap } from "../fuzz/attack-script.ts";
import {
  below,
  indexOfRepository,
  plant,
  play,
  REPOSITORY,
  removeFolder,
  type World,
  workFolder,
} from "../fuzz/play.ts";
import { hasBubblewrap } from "./bubblewrap.ts";

const works = await hasBubblewrap();
const CANARY = "canary-71c4";
const base = works ? workFolder() : "";
afterAll(() => {
  if (works) removeFolder(base);
});
const index = works ? indexOfRepository(base) : "";

const PARTS = Object.entries(PROTECTED_PARTS).flatMap(([folder, parts]) => parts.map((part) => `${folder}/${part}`));
const INTERNALS = ["hooks", "config", "config.worktree", "commondir", "modules"].map((name) => `.git/${name}`);
const isFile = (name: string): boolean =>
  /\.(json|worktree)$|config$|commondir$|attributes$/.test(name) ||
  PROTECTED_FILES.includes(name.slice(name.lastIndexOf("/") + 1));

/** Names that can be links at the same time. Each group stands at the top of the workspace and in a folder below. */
const GROUPS = {
  "names at the top of a folder": [".git", ...PROTECTED_FOLDERS, ...PROTECTED_FILES, ...Object.keys(PROTECTED_PARTS)],
  "names in a folder of theirs": [...PARTS, ...INTERNALS],
};

/** Where a link leads. */
const KINDS: Record<string, (world: World, name: string, number: number) => string> = {
  "the workspace": (world, name, number) => {
    const target = `targets/${number}${isFile(name) ? "/file" : ""}`;
    plant(world.roots[0] ?? "", isFile(name) ? { [target]: "text" } : { [`${target}/tasks.json`]: "text" });
    return `${world.roots[0]}/${target}`;
  },
  "a folder outside": (world, name) => `${world.base}/outside${isFile(name) ? "/file" : ""}`,
  "a hidden folder": (world, name) => `${world.home}/.ssh${isFile(name) ? "/id" : ""}`,
  "the home folder": (world) => world.home,
  "the state root": (world, name) => `${world.state}${isFile(name) ? "/token" : ""}`,
  nothing: (world, _, number) => `${world.roots[0]}/missing/${number}`,
};

let worlds = 0;
function newWorld(): World {
  const folder = `${base}/${++worlds}`;
  const [root, home, state] = [`${folder}/work`, `${folder}/home`, `${folder}/state`];
  plant(folder, { "outside/file": "text", "home/.ssh/id": CANARY, "home/.netrc": CANARY, "state/token": CANARY });
  plant(root, { ".env": CANARY, "a/b/.env.local": CANARY, "src/file": "text" });
  const untouched = [`${folder}/outside`, home, state];
  return { base: folder, roots: [root], home, state, untouched, canaries: [CANARY] };
}

const outsideOf = ({ base: folder, home, state }: World): string[] => [
  `${folder}/outside`,
  `${folder}/outside/file`,
  `${home}/.ssh`,
  `${home}/.ssh/id`,
  `${home}/.ssh/authorized_keys`,
  `${state}/token`,
];

/** A link with `..`, which bubblewrap would follow at both ends of a mount. */
function relativeLink(root: string, name: string, target: string): string {
  const up = "../".repeat(name.split("/").length);
  return `-> ${up}${target.slice(root.lastIndexOf("/") + 1).replace(/^\//, "")}`;
}

function stage(names: readonly string[], kind: string, folders: readonly string[]): { world: World; paths: string[] } {
  const world = newWorld();
  const [root = ""] = world.roots;
  const places = folders.flatMap((folder) => {
    if (!names.includes(".git")) plant(root, below(`${folder}.git`, REPOSITORY));
    // The folder as a link at one place, the file in it at the other.
    const info = names.includes(".git") ? [] : [folder === "" ? ".git/info" : ".git/info/attributes"];
    return [...names, ...info].map((name) => `${folder}${name}`);
  });
  for (const [number, place] of places.entries()) {
    const target = KINDS[kind]?.(world, place, number) ?? "";
    removeFolder(`${root}/${place}`);
    plant(root, { [place]: number % 2 === 0 ? `-> ${target}` : relativeLink(root, place, target) });
  }
  return { world, paths: places.map((place) => `${root}/${place}`) };
}

describe.runIf(works)("a protected name that is a link", () => {
  const cases = Object.entries(GROUPS).flatMap(([group, names]) =>
    Object.keys(KINDS).map((kind) => ({ group, names, kind })),
  );
  it.each(cases)(
    "a protected link gives a command no access when it leads to $kind: $group",
    async ({ names, kind }) => {
      const { world, paths } = stage(names, kind, ["", "sub/"]);
      const plan = { protected: paths, outside: outsideOf(world), steps: [] };
      expect(await play(world, plan, index)).toEqual({ problems: [] });
    },
  );

  it.each(["names at the top of a folder", "names in a folder of theirs"] as const)(
    "a protected link gives a command no access while another command swaps it: %s",
    async (group) => {
      const { world, paths } = stage(GROUPS[group], "the workspace", [""]);
      const targets = [`../${world.home.slice(world.base.length + 1)}/.ssh`, "../state", "../outside"];
      const swap = paths.map((path, number): Swap => {
        const up = "../".repeat(path.slice(`${world.roots[0]}/`.length).split("/").length - 1);
        return { path, target: `${up}${targets[number % targets.length]}` };
      });
      for (let round = 0; round < 3; round++) {
        const plan = { protected: paths, outside: outsideOf(world), steps: [], swap };
        const { problems } = await play(world, plan, index);
        expect(problems).toEqual([]);
      }
    },
  );

  it("a protected link gives no access while a command swaps what it has created since", async () => {
    const world = newWorld();
    const [root = ""] = world.roots;
    const make = {
      "x/.vscode": "editor folder",
      "y/.git": "repository",
      "z/.envrc": "file",
      "w/deep": "folder",
    } as const;
    const swap = Object.entries(make).map(
      ([path, kind]): Swap => ({
        path: `${root}/${path}`,
        target: path === "z/.envrc" ? "../../home/.ssh/id" : "../../home/.ssh",
        make: kind,
      }),
    );
    plant(root, { "w/file": "text", "x/file": "text", "y/file": "text", "z/file": "text" });
    for (let round = 0; round < 4; round++) {
      const { problems } = await play(world, { protected: [], outside: outsideOf(world), steps: [], swap }, index);
      expect(problems).toEqual([]);
    }
  });
});
