/** Protections of the sandbox that can be taken out by a change of its source, to show that the fuzzer notices. */
interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const profile = "src/tools/shell/sandbox/sandbox-profile.ts";
const scan = "src/tools/shell/sandbox/sandbox-scan.ts";
const named = "src/tools/shell/sandbox/named-repositories.ts";
const entry = "src/tools/shell/sandbox/sandbox-entry.ts";
const cleaning = "src/tools/shell/sandbox/clean-up/clean-up.ts";
const points = "src/tools/shell/sandbox/mount-points.ts";
const gitChecks = "src/tools/shell/sandbox/clean-up/checking-git.ts";

export const WITHOUT: Readonly<Record<string, readonly Change[]>> = {
  /** Workspaces are opened after paths were hidden. */
  "hidden-last": [
    {
      file: profile,
      from: "for (const path of outer) plan.open(path);\n  for (const path of hidden) if (!isInside(path, inner)) plan.hide(path);",
      to: "for (const path of hidden) if (!isInside(path, inner)) plan.hide(path);\n  for (const path of outer) plan.open(path);",
    },
  ],
  "mount-check": [
    {
      file: entry,
      from: '(inheritsDescriptors ? closeOthers(kept) : "") + check',
      to: '(inheritsDescriptors ? closeOthers(kept) : "")',
    },
  ],
  /** Links are mounted wherever they lead. */
  "links-inside-only": [
    {
      file: profile,
      from: "if (!isInside(target, roots) || isInside(target, this.#hidden)) return;",
      to: 'this.add({ kind: "bind", path: target, unchecked: true });\n    return;',
    },
  ],
  "pinned-parents": [
    { file: profile, from: "for (const folder of above.filter(", to: "for (const folder of [].filter(" },
  ],
  "check-afterwards": [{ file: cleaning, from: "for (const tree of left.trees) checkTree(tree);", to: "" }],
  "links-compared": [{ file: cleaning, from: "for (const link of left.links) checkLink(link);", to: "" }],
  "unreadable-hidden": [{ file: profile, from: ", ...found.unreadable];", to: "];" }],
  "commondir-protected": [{ file: profile, from: 'this.#readOnly(join(git, "commondir"), "commondir");', to: "" }],
  "link-targets-read-only": [{ file: profile, from: "this.#targets.add(target);", to: "" }],
  "nested-parts": [{ file: scan, from: 'if (parts.includes(name)) marks.push({ kind: "protected", path });', to: "" }],
  "environment-links": [
    {
      file: scan,
      from: "isEnvironmentFile(entry.name) && !entry.isDirectory()",
      to: "isEnvironmentFile(entry.name) && entry.isFile()",
    },
  ],
  "bare-with-commondir": [{ file: scan, from: '(names.has("commondir") || ', to: "(" }],
  "odd-names": [{ file: scan, from: "unnameable: isOdd ? unnameableIn(folder, area) : [],", to: "unnameable: []," }],
  "git-files-outside": [
    {
      file: gitChecks,
      from: 'else moveAside(target, "it redirects git through a link, to a folder outside the workspace, or to none");',
      to: "",
    },
  ],
  "packages-named-by-an-index": [{ file: named, from: "undefined : repositoriesIn(path)", to: "undefined : []" }],
  "points-removed": [
    { file: cleaning, from: "for (const point of [...left.points].reverse()) removePoint(point);", to: "" },
    { file: points, from: "canMove ? this.#spare.putBack(unused) : unused", to: "unused" },
  ],
};
