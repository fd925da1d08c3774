/**
 * The environment of child processes. Only the variables named here are passed, so new secrets are excluded by default.
 */

const PASSED = new Set(["PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR"]);
const SECRET_WORD =
  /(^|_)(API_?KEY|KEY|KEYS|TOKENS?|SECRETS?|PASS|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?|AUTH|AUTHORIZATION|BEARER|COOKIE|PRIVATE|CERT|DSN|PAT|CONNECTION_STRING|SAS|HEADERS)(_|$)/i;
const SECRET_ENDING = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$/i;
/** Linux refuses to start a program with a longer entry. */
const MAX_VALUE_CHARACTERS = 100_000;

export interface EnvironmentAdditions {
  /** Further names to copy from the parent. A name that looks like a secret is never copied, even if listed. */
  readonly names?: readonly string[];
  /** Set unchanged; for values that troupe or the user's own settings decide. */
  readonly values?: Readonly<Record<string, string>>;
}

export function childEnvironment(
  parent: Readonly<Record<string, string | undefined>>,
  additions: EnvironmentAdditions = {},
): Record<string, string> {
  const wanted = new Set(additions.names ?? []);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(parent)) {
    const passes = PASSED.has(name) || /^LC_[A-Z]+$/.test(name) || wanted.has(name);
    if (passes && !looksSecret(name) && isUsable(value)) environment[name] = value;
  }
  return { ...environment, ...additions.values };
}

/** True for names that usually hold a secret. */
export function looksSecret(name: string): boolean {
  return !FOLDERS.has(name) && (SECRET_WORD.test(name) || SECRET_ENDING.test(name));
}

/**
 * True for variables that affect the loader or `/bin/sh`. A project must not set them: they would control the program
 * that builds the sandbox, before there is a sandbox.
 */
export function steersLauncher(name: string): boolean {
  return LAUNCHER_VARIABLE.test(name);
}

const LAUNCHER_VARIABLE =
  /^(LD_|DYLD_|GLIBC_|MALLOC_|BASH_|GCONV_PATH$|LOCPATH$|NLSPATH$|ENV$|SHELLOPTS$|BASHOPTS$|PS4$|IFS$)/;

/** The current and the previous folder of a shell are not passwords, despite their endings. */
const FOLDERS: ReadonlySet<string> = new Set(["PWD", "OLDPWD"]);

/** A value that begins like this is an exported shell function: code, not data. */
function isUsable(value: string | undefined): value is string {
  return value !== undefined && value.length <= MAX_VALUE_CHARACTERS && !value.startsWith("() {");
}
