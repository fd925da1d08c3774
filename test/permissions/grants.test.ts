import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import type { Approval } from "../../src/permissions/approvals.ts";
import { openGrants } from "../../src/permissions/grants.ts";
import { locationKey } from "../../src/permissions/location.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const gitStatus: Approval = { kind: "commands", commandIdentifiers: ["git status"] };

it("stored approvals keep the file's format, and unknown fields stay untouched", async () => {
  const foreign = {
    version: 3,
    locations: {
      "/other": { tool_approvals: [{ kind: "read" }], allowed_directories: [] },
      "/repo": { tool_approvals: [{ kind: "from-the-future", x: 1 }], allowed_directories: ["/data"], note: "kept" },
    },
  };
  await using folder = await tempFolder({ "permissions-config.json": JSON.stringify(foreign) });
  const file = folder.at("permissions-config.json");
  const grants = openGrants({ disk: nodeDisk, file, location: "/repo" });
  expect({ location: grants.locationApprovals, directories: grants.allowedDirectories }).toEqual({
    location: [],
    directories: ["/data"],
  });
  await Promise.all([
    grants.approveForLocation(gitStatus),
    grants.approveForLocation({ kind: "mcp", serverName: "github", toolName: null }),
    grants.approveForLocation(gitStatus),
    grants.allowDirectory("/more"),
  ]);
  expect(JSON.parse(await folder.read("permissions-config.json"))).toEqual({
    version: 3,
    locations: {
      "/other": foreign.locations["/other"],
      "/repo": {
        tool_approvals: [
          { kind: "from-the-future", x: 1 },
          gitStatus,
          { kind: "mcp", serverName: "github", toolName: null },
        ],
        allowed_directories: ["/data", "/more"],
        note: "kept",
      },
    },
  });
  expect(openGrants({ disk: nodeDisk, file, location: "/repo" }).locationApprovals).toEqual(grants.locationApprovals);
});

it("approvals that another process stored are not lost", async () => {
  await using folder = await tempFolder();
  const open = () =>
    openGrants({ disk: nodeDisk, file: folder.at("state/permissions-config.json"), location: "/repo" });
  const [one, other] = [open(), open()];
  await one.approveForLocation({ kind: "write" });
  await other.approveForLocation({ kind: "memory" });
  expect(open().locationApprovals).toEqual([{ kind: "write" }, { kind: "memory" }]);
});

it("a broken file of approvals is reported and left alone", async () => {
  await using folder = await tempFolder({ "permissions-config.json": "{ broken" });
  const file = folder.at("permissions-config.json");
  expect(() => openGrants({ disk: nodeDisk, file, location: "/repo" })).toThrow(
    /permissions-config\.json is not JSON: .* Fix or delete it/,
  );
  expect(await folder.read("permissions-config.json")).toBe("{ broken");
});

it("approvals for the session can be forgotten, and are never stored on disk", async () => {
  await using folder = await tempFolder();
  const grants = openGrants({ disk: nodeDisk, file: folder.at("permissions-config.json"), location: "/repo" });
  grants.approveForSession(gitStatus);
  grants.approveForSession(gitStatus);
  expect(grants.sessionApprovals).toEqual([gitStatus]);
  grants.resetSession();
  expect(grants.sessionApprovals).toEqual([]);
  expect(await folder.tree()).toEqual({});
});

it("an approval's location is the repository, also from a worktree, else the folder itself", async () => {
  await using folder = await tempFolder({ "main/.git/HEAD": "", "main/src/a.ts": "", "plain/x": "" });
  const worktreeGit = folder.at("main/.git/worktrees/w");
  await mkdir(worktreeGit, { recursive: true });
  await mkdir(folder.at("w/deep"), { recursive: true });
  await writeFile(join(worktreeGit, "commondir"), "../..\n");
  await writeFile(join(worktreeGit, "gitdir"), `${folder.at("w/.git")}\n`);
  await writeFile(folder.at("w/.git"), `gitdir: ${worktreeGit}\n`);
  await mkdir(folder.at("thief"));
  await writeFile(folder.at("thief/.git"), `gitdir: ${worktreeGit}\n`);
  const keys = ["main/src", "w/deep", "thief", "plain"].map((path) => locationKey(folder.at(path)));
  expect(keys).toEqual([folder.at("main"), folder.at("main"), folder.at("thief"), folder.at("plain")]);
});
