/**
 * Options that make an allowed program run something else: a shell for scripts, an interpreter, a settings file from
 * elsewhere. Allowing `npm test` does not allow `npm test --script-shell=./x`.
 */
import { hasOption } from "./option-scan.ts";

interface Escapes {
  readonly long?: readonly string[];
  readonly short?: string;
  /** Words with one dash or none, alone or before an equals sign. */
  readonly words?: readonly string[];
  /** `NAME=value` among the arguments sets something. */
  readonly assignments?: boolean;
  /** Arguments after `--` are passed on to another program. */
  readonly endsAtDashes?: boolean;
}

const PACKAGE_MANAGER: Escapes = {
  long: [
    ...["--script-shell", "--shell", "--node-options", "--userconfig", "--globalconfig", "--rc-file", "--use-yarnrc"],
    ...["--git", "--editor", "--browser", "--viewer", "--python", "--node-gyp", "--init-module", "--registry"],
    ...["--prefix", "--cwd", "--dir", "--pnpmfile", "--global-pnpmfile", "--call", "--preload"],
  ],
  short: "C",
  endsAtDashes: true,
};
const PYTHON_PACKAGES: Escapes = {
  long: ["--python", "--index-url", "--extra-index-url", "--find-links", "--log", "--config-file", "--directory"],
  short: "if",
};
const SECURE_SHELL: Escapes = { short: "oFS", words: ["-J"] };

const ESCAPES: ReadonlyMap<string, Escapes> = new Map<string, Escapes>([
  ...["npm", "npx", "pnpm", "yarn", "bun"].map((name): [string, Escapes] => [name, PACKAGE_MANAGER]),
  ...["pip", "pip3", "uv", "poetry"].map((name): [string, Escapes] => [name, PYTHON_PACKAGES]),
  ...["ssh", "scp", "sftp"].map((name): [string, Escapes] => [name, SECURE_SHELL]),
  ["cargo", { long: ["--config", "--manifest-path"], short: "ZC", endsAtDashes: true }],
  [
    "go",
    {
      words: ["exec", "toolexec", "overlay", "modfile", "vettool", "C", "o"].flatMap((name) => [
        `-${name}`,
        `--${name}`,
      ]),
    },
  ],
  [
    "make",
    { long: ["--file", "--makefile", "--eval", "--directory", "--include-dir"], short: "fCI", assignments: true },
  ],
  ["rsync", { long: ["--rsh", "--rsync-path", "--daemon", "--config"], short: "e" }],
  ["zip", { long: ["--unzip-command"], words: ["-TT"] }],
  ["docker", { long: ["--config", "--host", "--context"], short: "H" }],
  ["kubectl", { long: ["--kubeconfig", "--server", "--token", "--as"], short: "s" }],
  [
    "eslint",
    {
      long: ["--config", "--rulesdir", "--parser", "--plugin", "--resolve-plugins-relative-to", "--format"],
      short: "cf",
    },
  ],
  ["prettier", { long: ["--config", "--plugin", "--plugin-search-dir"] }],
  [
    "jest",
    { long: ["--config", "--runner", "--globalSetup", "--setupFiles", "--testRunner", "--rootDir"], short: "c" },
  ],
  ["vitest", { long: ["--config", "--root", "--globalSetup", "--environment"], short: "cr" }],
  ["mocha", { long: ["--require", "--config", "--ui", "--reporter", "--import", "--loader"], short: "rRu" }],
  ["pytest", { long: ["--rootdir", "--confcutdir", "--override-ini", "--config-file"], short: "pco" }],
  ["terraform", { long: ["--chdir"], words: ["-chdir", "-plugin-dir"] }],
]);

/** Returns true when an option makes a program of this table run something that its name does not say. */
export function escapesByOption(name: string, args: readonly string[]): boolean {
  const escapes = ESCAPES.get(name);
  if (escapes === undefined) return false;
  const end = escapes.endsAtDashes ? args.indexOf("--") : -1;
  const own = end < 0 ? args : args.slice(0, end);
  const isWord = (word: string): boolean => escapes.words?.includes(word.split("=", 1)[0] ?? "") ?? false;
  return (
    hasOption(own, escapes) ||
    own.some(isWord) ||
    (escapes.assignments === true && own.some((word) => /^[A-Za-z_.][\w.-]*[:+?!]*=/.test(word)))
  );
}
