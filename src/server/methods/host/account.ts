/**
 * The user's GitHub identity and its entitlements. GitHub is contacted only if the environment configures its address.
 */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import type { Github, GithubStatus, GithubToken } from "../../../model/github/github.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { type Call, type MethodTable, method, noParams, nothing, sessionMethod } from "../method.ts";
import { modelInfo } from "./model.ts";

const byToken = () => z.object({ gitHubToken: z.string().optional() });

export const accountMethods: MethodTable = {
  "auth.getStatus": method(noParams, async (_params, call) => {
    const { plan: _, ...status } = (await (await githubOf(call))?.status()) ?? signedOut;
    return status;
  }),
  // The account's models come first. Models that are configured locally need no account.
  "models.list": method(byToken, async ({ gitHubToken }, call) => {
    const identity = await call.server.runtime.github.identityOf(gitHubToken);
    const rows = await call.server.runtime.models.forSession({ identity }).list();
    return { models: rows.filter(({ usable }) => usable).map(modelInfo) };
  }),
  "account.getQuota": method(byToken, async ({ gitHubToken }, call) => {
    const github = await reachableGithub(call);
    const token = gitHubToken ?? github.ambient?.token;
    if (token === undefined) throw new TroupeError("usage", "No GitHub account is signed in.");
    return { quotaSnapshots: (await github.user(token)).quota };
  }),
  "account.getCurrentAuth": method(noParams, async (_, call) => {
    const status = (await (await githubOf(call))?.status()) ?? signedOut;
    return status.isAuthenticated ? { authInfo: authInfo(status) } : {};
  }),
  "account.getAllUsers": method(noParams, async (_, call) => {
    const github = await githubOf(call);
    return (github?.accounts ?? []).map(({ host, login, token }) => ({
      authInfo: { type: "user", host, login },
      token,
    }));
  }),
  // Held in memory while the server runs. Account data is never written to disk.
  "account.login": method(
    () => z.object({ host: z.string(), login: z.string().optional(), token: z.string().min(1) }),
    async ({ host, token }, call) => {
      await (await reachableGithub(call)).signIn({ host, token });
      return { storedInVault: false };
    },
  ),
  "account.logout": method(
    () => z.object({ authInfo: z.looseObject({ login: z.string().optional() }).optional() }),
    async ({ authInfo: who }, call) => ({ hasMoreUsers: (await githubOf(call))?.signOut(who?.login) ?? false }),
  ),
  "session.gitHubAuth.getStatus": sessionMethod(nothing, async (_, { session, hosted }) => {
    const { plan, ...status } = hosted.identity ?? (await session.workspace.services?.identity?.status()) ?? signedOut;
    return { ...status, ...defined({ copilotPlan: plan }) };
  }),
  "session.gitHubAuth.setCredentials": sessionMethod(
    () => ({ credentials: Credentials.optional() }),
    async ({ credentials }, { hosted, hub }) => {
      hosted.identity = credentials && statusOf(credentials);
      if (credentials?.token) await hub.reconfigure(hosted, { gitHubToken: credentials.token });
      return { success: true, copilotUserResolved: credentials?.copilotUser !== undefined };
    },
  ),
};

export const signedOut: GithubStatus = { isAuthenticated: false, statusMessage: "Not authenticated" };

const Credentials = z.object({
  type: z.enum(["hmac", "env", "user", "gh-cli", "api-key", "token", "copilot-api-token"]),
  host: z.string().optional(),
  login: z.string().optional(),
  token: z.string().optional(),
  copilotUser: z.looseObject({ login: z.string().optional(), copilot_plan: z.string().optional() }).optional(),
});

/** The client's identity is trusted: no decision here depends on it. */
function statusOf({ type, host, login, copilotUser }: z.infer<typeof Credentials>): GithubStatus {
  const name = login ?? copilotUser?.login;
  return {
    isAuthenticated: true,
    statusMessage: name ?? "Signed in",
    authType: type,
    ...defined({ host, login: name, plan: copilotUser?.copilot_plan }),
  };
}

function authInfo({ authType, host, login }: GithubStatus): {
  type: GithubToken["authType"];
  host?: string;
  login?: string;
} {
  return {
    type: authType ?? "token",
    ...defined({ host, login }),
  };
}

export const githubOf = (call: Call): Promise<Github | undefined> => call.server.runtime.github.open();

async function reachableGithub(call: Call): Promise<Github> {
  const github = await githubOf(call);
  if (github?.isReachable) return github;
  throw new TroupeError("usage", "No GitHub address is configured, so the account cannot be read.", {
    hint: "Set COPILOT_DEBUG_GITHUB_API_URL before the server starts.",
  });
}
