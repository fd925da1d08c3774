/** GitHub accounts that a session's client manages. Tokens are held in memory while the server runs. */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { Account, Github } from "../../model/github/github.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { githubOf, signedOut } from "./host/account.ts";
import { type MethodTable, nothing, type SessionCall, sessionMethod } from "./method.ts";

const Write = () =>
  z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("switchActive"), selectionId: z.string() }),
    z.object({ kind: z.literal("logout"), selectionId: z.string().optional() }),
    z.looseObject({ kind: z.literal("setCredentials"), host: z.string(), token: z.string().min(1) }),
  ]);
const oneOf = (...kinds: readonly string[]) => ({ query: z.looseObject({ kind: z.enum(kinds) }) });

export const accountsMethods: MethodTable = {
  "session.accounts.enumerate": sessionMethod(
    () => oneOf("accounts", "providers"),
    async ({ query: { kind } }, call) => ({ kind, items: kind === "accounts" ? accountsOf(await githubOf(call)) : [] }),
  ),
  "session.accounts.get": sessionMethod(
    () => oneOf("activeAccount", "status", "lastErrors"),
    async ({ query: { kind } }, call) => {
      if (kind === "lastErrors") return { kind, errors: [] };
      if (kind === "status") return { kind, status: await statusOf(call) };
      const account = accountsOf(await githubOf(call)).find(({ active }) => active);
      return { kind, ...defined({ account }) };
    },
  ),
  "session.accounts.set": sessionMethod(
    () => ({ command: Write() }),
    async ({ command }, call) => {
      const github = await githubOf(call);
      if (command.kind === "setCredentials") {
        await github?.signIn(command);
        return { ok: github !== undefined };
      }
      const known = github?.accounts.find((one) => selectionId(one) === command.selectionId);
      if (command.kind === "switchActive") {
        // The account that signed in last is the active one.
        if (known) await github?.signIn(known);
        return { ok: known !== undefined };
      }
      const moreUsers = github?.signOut(known?.login) ?? false;
      return { ok: github !== undefined, moreUsers };
    },
  ),
  "session.accounts.login.begin": sessionMethod(nothing, () => {
    throw new TroupeError("usage", "Signing in with a browser is not supported by this server.", {
      hint: "Give a token: session.accounts.set with setCredentials, or gitHubToken.",
    });
  }),
  "session.accounts.login.advance": sessionMethod(
    () => ({ flowId: z.string() }),
    ({ flowId }) => {
      throw new TroupeError("usage", `No sign-in ${flowId} is in progress.`);
    },
  ),
  "session.accounts.login.cancel": sessionMethod(nothing, () => undefined),
};

const selectionId = ({ host, login }: Account): string => `${host}/${login}`;

function accountsOf(github: Github | undefined) {
  const accounts = github?.accounts ?? [];
  return accounts.map((account) => ({
    host: account.host,
    login: account.login,
    kind: /(^|\/)github\.com\/?$/.test(account.host) ? "githubDotCom" : "proxima",
    active: github?.ambient?.token === account.token,
    selectionId: selectionId(account),
  }));
}

async function statusOf(call: SessionCall): Promise<object> {
  const { isAuthenticated, login, host, plan } =
    call.hosted.identity ?? (await call.session.workspace.services?.identity?.status()) ?? signedOut;
  return {
    isAuthenticated,
    ...defined({ activeLogin: login, activeHost: host, copilotPlan: plan }),
    accountCount: (await githubOf(call))?.accounts.length ?? 0,
  };
}
