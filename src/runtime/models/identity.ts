/** GitHub identities of sessions, for programs that request them. Without such a request GitHub is never contacted. */
import type { Stamp } from "../../lib/stamp.ts";
import type { Github, GithubStatus, GithubToken, SendContext } from "../../model/github/github.ts";
import type { ModelSettings } from "../../model/settings/settings.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { version } from "../version.ts";

/** A program's request for GitHub identities and models, if the environment says how to reach them. */
export interface GithubRequest {
  /** The environment variable that holds the program's token. */
  readonly tokenVariable?: string | undefined;
  /** False: tokens in well-known environment variables are not used. */
  readonly ambient?: boolean | undefined;
}

export interface SessionIdentity {
  status(): Promise<GithubStatus>;
  endpoint(): ReturnType<Github["endpoint"]>;
  /** Address of GitHub's MCP server; undefined if the identity may not use it. */
  mcpEndpoint(): ReturnType<Github["mcpEndpoint"]>;
  /** Returns the configured settings with GitHub's models for this identity added. */
  settingsWith(known: ModelSettings, carrying: SendContext): Promise<ModelSettings>;
}

export interface GithubService {
  /** Returns undefined if no program requests it. */
  open(): Promise<Github | undefined>;
  /**
   * Returns a session's identity, from its own token or the process's. Throws if its own token is invalid. Returns
   * undefined without a token, or if no GitHub address is configured.
   */
  identityOf(token: string | undefined): Promise<SessionIdentity | undefined>;
}

export function githubService(what: {
  request: GithubRequest | undefined;
  environment: Readonly<Record<string, string | undefined>>;
  stamp: Stamp;
  onToken(token: string): void;
}): GithubService {
  const { request, environment, stamp, onToken } = what;
  let opened: Promise<Github> | undefined;
  const open = async (): Promise<Github | undefined> => {
    if (!request) return undefined;
    opened ??= import("../../model/github/github.ts").then(
      ({ Github }) => new Github({ ...request, environment, stamp, userAgent: `troupe/${version}` }),
    );
    return opened;
  };
  return {
    open,
    async identityOf(token) {
      const github = await open();
      if (!github?.isReachable) return undefined;
      const signIn: GithubToken | undefined = token ? { token, authType: "token" } : github.ambient;
      if (!signIn) return undefined;
      onToken(signIn.token);
      if (token) await checkToken(github, token);
      return {
        status: () => github.status(signIn),
        endpoint: () => github.endpoint(signIn.token),
        mcpEndpoint: () => github.mcpEndpoint(signIn.token),
        settingsWith: (known, carrying) => github.settingsWith(known, signIn.token, carrying),
      };
    },
  };
}

/** Validates a session's token before the session is created. */
async function checkToken(github: Github, token: string): Promise<void> {
  try {
    await github.user(token);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("configuration", `The session's GitHub token was not accepted: ${why}`, { cause });
  }
}
