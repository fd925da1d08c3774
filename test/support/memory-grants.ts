import type { Grants } from "../../src/permissions/grants.ts";

/** Approvals for a session without storage. An approval for the location lasts for the session. */
export function memoryGrants(): Grants {
  const session: Grants["sessionApprovals"][number][] = [];
  const directories: string[] = [];
  return {
    sessionApprovals: session,
    locationApprovals: [],
    allowedDirectories: directories,
    approveForSession: (approval) => void session.push(approval),
    approveForLocation: async (approval) => void session.push(approval),
    allowDirectory: async (path) => void directories.push(path),
    resetSession: () => void session.splice(0),
  };
}
