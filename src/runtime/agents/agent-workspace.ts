/** Gives each agent its own files and shells, in the session's folder or in a git worktree. */

import { basename, join, relative } from "node:path";
import type { Checkpoints } from "../../checkpoints/checkpoints.ts";
import { defined } from "../../lib/defined.ts";
import type { Disk } from "../../lib/node/disk.ts";
import { linkedPaths } from "../../permissions/linked-paths.ts";
import { type Policy, policyWith } from "../../permissions/policy.ts";
import { protectionOf } from "../../permissions/protected-paths.ts";
import type { Rule } from "../../permissions/rules.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { AgentTask } from "../../session/agents/agent-run.ts";
import { type FileLedger, type Files, fileLedger, rememberedFiles } from "../../tools/files/files.ts";
import type { Shells } from "../../tools/shell/shells.ts";
import type { ToolPorts } from "../../tools/tool.ts";
import type { ShellContainment } from "../permissions/containment.ts";
import type { AgentWorkspace } from "./agent-pool-setup.ts";

export interface WorkspaceParts {
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly policy: Policy;
  readonly gitRoot: string | undefined;
  readonly sessionId: string;
  readonly sessionFolder: string;
  readonly disk: Disk;
  readonly checkpoints: Checkpoints;
  /** Ports shared by all agents of the session. */
  readonly shared: ToolPorts;
  newShells(options?: { gitMounts?: () => Promise<readonly string[]>; containment?: ShellContainment }): Shells;
  /** Enforces the policy's denials for shell commands. */
  contain(policy: Policy, cwd: string): ShellContainment;
}

export interface AgentWorkspaces {
  /** Returns file access for one agent in the session's folder; undefined: the main agent. */
  filesOf(agentId?: string): Files;
  workspaceFor(task: AgentTask): Promise<AgentWorkspace>;
  /** Folder of the agents' worktrees. */
  readonly worktrees: string;
}

export function agentWorkspaces(parts: WorkspaceParts): AgentWorkspaces {
  const ledger = fileLedger();
  const worktrees = join(parts.sessionFolder, "worktrees");
  const filesOf = (agent: string | undefined, policy: Policy, shared: FileLedger): Files =>
    rememberedFiles({
      ...defined({ agent }),
      ledger: shared,
      keep: (changes) => parts.checkpoints.keep(changes),
      reasonToRefuse: (path) => (protectionOf(path, policy.protectedPaths) === "deny" ? "it is protected" : undefined),
    });
  return {
    worktrees,
    filesOf: (agentId) => filesOf(agentId, parts.policy, ledger),
    async workspaceFor(task) {
      if (task.spec.worktree !== undefined) return inWorktree(task, { parts, worktrees, filesOf });
      const shells = parts.newShells();
      const { cwd, roots, policy, shared } = parts;
      const ports = { ...shared, files: filesOf(task.id, policy, ledger), shells };
      return { cwd, roots, policy, ports, release: () => shells.closeAll() };
    },
  };
}

/** Extends denials of repository files to their copies in the worktree. */
function inTree(policy: Policy, { from, to }: { from: string; to: string }): Policy {
  const copied = ({ target, effect, ...rule }: Rule): Rule[] => {
    if (effect === "allow" || (target.kind !== "read" && target.kind !== "write") || target.path === undefined)
      return [];
    const below = relative(from, policy.resolvePath(target.path, from));
    if (!/^[/~]/.test(target.path) || below === "" || below.startsWith("..")) return [];
    return [{ ...rule, effect, target: { ...target, path: join(to, below) } }];
  };
  return {
    ...policy,
    get rules() {
      return [...policy.rules, ...policy.rules.flatMap(copied)];
    },
  };
}

async function inWorktree(
  task: AgentTask,
  how: {
    parts: WorkspaceParts;
    worktrees: string;
    filesOf(agent: string, policy: Policy, ledger: FileLedger): Files;
  },
): Promise<AgentWorkspace> {
  const { parts, worktrees, filesOf } = how;
  if (parts.gitRoot === undefined) {
    throw new TroupeError("usage", "`isolation: worktree` needs a git repository, and this folder is not in one.", {
      hint: "Run git init and commit, or remove isolation from the agent or the call.",
    });
  }
  const [{ createWorktree }, { gitAccessMounts, worktreeAccess }] = await Promise.all([
    import("../../worktrees/worktrees.ts"),
    import("../../worktrees/worktree-access.ts"),
  ]);
  const { disk } = parts;
  // An agent started by an agent in a worktree works in the same worktree.
  const taskId = task.spec.worktree === worktrees ? task.id : basename(task.spec.worktree ?? "");
  const tree = await createWorktree({
    repository: parts.cwd,
    folder: worktrees,
    sessionId: parts.sessionId,
    taskId,
    disk,
  });
  const { protectedPaths } = parts.policy;
  const roots = [tree.root, ...parts.roots.filter((root) => root.startsWith(`${parts.sessionFolder}/`))];
  // The agent is bound to its tree: it gets no write access to the session's working directory.
  const linked = linkedPaths([tree.root]);
  const own = policyWith(inTree(parts.policy, { from: parts.gitRoot, to: tree.root }), {
    roots,
    protectedPaths: {
      ...protectedPaths,
      writable: [...protectedPaths.writable, tree.root],
      gitFolders: [...protectedPaths.gitFolders, ...linked.gitFolders],
      linkTargets: [...protectedPaths.linkTargets, ...linked.linkTargets],
    },
  });
  const containment = parts.contain(own, tree.cwd);
  const policy = policyWith(own, { containment });
  const shells = parts.newShells({
    gitMounts: async () => gitAccessMounts(await worktreeAccess({ folder: worktrees, taskId, disk })),
    containment,
  });
  return {
    cwd: tree.cwd,
    roots,
    policy,
    ports: { ...parts.shared, files: filesOf(task.id, policy, fileLedger()), shells },
    notes: [
      `You work in a git worktree of your own (${tree.root}, branch ${tree.branch}). Commit what should be kept; do not merge it yourself.`,
      ...tree.notices,
    ],
    release: () => shells.closeAll(),
  };
}
