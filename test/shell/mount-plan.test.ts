/** The plan of a sandbox's mounts, which is the same whether bubblewrap is installed or not. */
import { describe, expect, it } from "vitest";
import { isInside } from "../../src/lib/node/paths.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { planMounts, type SandboxProfile } from "../../src/tools/shell/sandbox/sandbox-profile.ts";
import { WorkspaceScanner } from "../../src/tools/shell/sandbox/sandbox-scan.ts";

const files = {
  "w/src/a.ts": "",
  "w/.env": "",
  "w/.vscode/tasks.json": "",
  "w/.git/HEAD": "",
  "w/.git/config": "",
  "w/.git/hooks/pre-commit": "",
  "w/.git/objects/a": "",
  "w/sub/.git/config": "",
  "w/sub/.env.local": "",
  "w/keys/one": "",
  "state/settings.json": "",
  "home/.ssh/id": "",
  "home/notes": "",
};

/** Returns the kind of the mount on top of a path; undefined for the machine itself, which is read-only. */
async function planned(folder: TempFolder, more: Partial<SandboxProfile> = {}) {
  const root = folder.at("w");
  const { mounts } = planMounts({
    workspace: [{ root, found: await new WorkspaceScanner().scan(root) }],
    writable: [],
    readable: [],
    denied: [folder.at("w/keys")],
    readOnlyWorkspace: false,
    home: folder.at("home"),
    credentials: [folder.at("home/.ssh")],
    stateRoot: folder.at("state"),
    temporaryFolders: [],
    homeView: { kind: "open" },
    environmentFiles: false,
    placeholders: new Set(),
    isFixed: () => true,
    heldLinks: [],
    ...more,
  });
  return (path: string): string | undefined =>
    mounts.findLast((mount) => isInside(folder.at(path), [mount.path]))?.kind;
}

describe("the plan of a sandbox's mounts", () => {
  it("the sandbox's mount plan lets a command change the workspace and commit", async () => {
    await using folder = await tempFolder(files);
    const kindOf = await planned(folder);
    expect(["w/src/a.ts", "w/new.ts", "w/.git/objects/a", "w/.git/index"].map(kindOf)).toEqual(Array(4).fill("bind"));
  });

  it("the sandbox's mount plan makes everything read-only that runs programs later", async () => {
    await using folder = await tempFolder(files);
    const kindOf = await planned(folder);
    const guarded = [
      ...["w/.git/hooks/pre-commit", "w/.git/config", "w/.git/info/attributes", "w/.git/commondir"],
      ...["w/.vscode/tasks.json", "w/sub/.git/config"],
    ];
    expect(guarded.map((path) => [path, kindOf(path)])).toEqual(guarded.map((path) => [path, "ro-bind"]));
    const missing = ["w/.git/config.worktree", "w/.git/modules", "w/.mcp.json", "w/.idea", "w/sub/.git/hooks"];
    expect(missing.map((path) => [path, kindOf(path)])).toEqual(missing.map((path) => [path, "empty folder"]));
  });

  it("the sandbox's mount plan hides troupe's own state, credentials, denied folders and .env files", async () => {
    await using folder = await tempFolder(files);
    const kindOf = await planned(folder);
    expect(["state/settings.json", "home/.ssh/id", "w/keys/one"].map(kindOf)).toEqual(Array(3).fill("scratch"));
    expect(["w/.env", "w/sub/.env.local"].map(kindOf)).toEqual(Array(2).fill("empty file"));
    expect(kindOf("home/notes")).toBeUndefined();
  });

  it("the sandbox's mount plan shows .env files where that is allowed", async () => {
    await using folder = await tempFolder(files);
    const kindOf = await planned(folder, { environmentFiles: true });
    expect(["w/.env", "w/sub/.env.local"].map(kindOf)).toEqual(Array(2).fill("bind"));
  });

  it("the sandbox's mount plan makes the repository of a worktree read-only with the workspace", async () => {
    await using folder = await tempFolder({ ...files, "repository/objects/a": "", "repository/refs/a": "" });
    const [repository, objects] = [folder.at("repository"), folder.at("repository/objects")];
    const gitMounts = ["--ro-bind", repository, repository, "--bind", objects, objects];
    const paths = ["repository/objects/a", "repository/refs/a"];
    expect(paths.map(await planned(folder, { gitMounts }))).toEqual(["bind", "ro-bind"]);
    const readOnly = await planned(folder, { gitMounts, readOnlyWorkspace: true });
    expect(paths.map(readOnly)).toEqual(["ro-bind", "ro-bind"]);
  });

  it("the sandbox's mount plan makes the whole workspace read-only on request, and still hides secrets", async () => {
    await using folder = await tempFolder(files);
    const kindOf = await planned(folder, { readOnlyWorkspace: true });
    expect(["w/src/a.ts", "w/new.ts", "w/.git/index"].map(kindOf)).toEqual(Array(3).fill("ro-bind"));
    expect(["w/.env", "w/keys/one"].map(kindOf)).toEqual(["empty file", "scratch"]);
  });
});
