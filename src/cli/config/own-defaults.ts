/** Applies the user's settings `stream`, `logLevel` and `askUser` as defaults of flags. */
import { loadSettings } from "../../catalog/settings/settings.ts";
import type { Arguments } from "../args.ts";

/** Returns the arguments with values of the user's own settings for flags that are not given. Ignores projects' files. */
export function withOwnDefaults(given: Arguments, home: string): Arguments {
  const { stream, logLevel, askUser } = loadSettings({
    stateRoot: home,
    cwd: home,
    isTrusted: () => false,
  }).effective;
  const defaults: Readonly<Record<string, string | undefined>> = {
    stream: stream === undefined ? undefined : stream ? "on" : "off",
    "log-level": logLevel,
  };
  return {
    ...given,
    choice: (name, choices) => given.choice(name, choices) ?? choices.find((choice) => choice === defaults[name]),
    has: (name) => given.has(name) || (name === "no-ask-user" && askUser === false),
  };
}
