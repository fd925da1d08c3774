/** Who a session is on GitHub, for programs that want to know; without their wish there is nobody to ask. */
import type { Stamp } from "../../lib/stamp.ts";
import type { Carrying, Github, GithubStatus, SignIn } from "../../model/github/github.ts";
import type { Settings } from "../../model/settings/settings.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { version } from "../version.ts";

/** A program wants GitHub identities and models, where the environment says how to reach them. */
export interface GithubWish {
  /** The environment variable that holds the program's token. */
  readonly tokenVariable?: string | undefined;
  /** False: a token that merely lies in the environment is not used. */
  readonly ambient?: boolean | undefined;
}

export interface SessionIdentity {
  status(): Promise<GithubStatus>;
  endpoint(): ReturnType<Github["endpoint"]>;
  /** Where their MCP server is; undefined where they may have none. */
  serverPlace(): ReturnType<Github["serverPlace"]>;
  /** What is configured, with the models that GitHub has for this identity. */
  settingsWith(known: Settings, carrying: Carrying): Promise<Settings>;
}

export interface GithubDesk {
  /** Undefined where nobody wants it. */
  open(): Promise<Github | undefined>;
  /** Of a session: by its own token, which must be good, or the process's. Undefined where there is nobody to ask. */
  identityOf(token: string | undefined): Promise<SessionIdentity | undefined>;
}

export function githubDesk(what: {
  wish: GithubWish | undefined;
  environment: Readonly<Record<string, string | undefined>>;
  stamp: Stamp;
  onToken(token: string): void;
}): GithubDesk {
  const { wish, environment, stamp, onToken } = what;
  let opened: Promise<Github> | undefined;
  const open = async (): Promise<Github | undefined> => {
    if (!wish) return undefined;
    opened ??= import("../../model/github/github.ts").then(
      ({ Github }) => new Github({ ...wish, environment, stamp, userAgent: `troupe/${version}` }),
    );
    return opened;
  };
  return {
    open,
    async identityOf(token) {
      const github = await open();
      if (!github?.isReachable) return undefined;
      const signIn: SignIn | undefined = token ? { token, authType: "token" } : github.ambient;
      if (!signIn) return undefined;
      onToken(signIn.token);
      if (token) await admitted(github, token);
      return {
        status: () => github.status(signIn),
        endpoint: () => github.endpoint(signIn.token),
        serverPlace: () => github.serverPlace(signIn.token),
        settingsWith: (known, carrying) => github.settingsWith(known, signIn.token, carrying),
      };
    },
  };
}

/** A token that a session was given is looked at before there is a session. */
async function admitted(github: Github, token: string): Promise<void> {
  try {
    await github.user(token);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("configuration", `The session's GitHub token was not accepted: ${why}`, { cause });
  }
}
