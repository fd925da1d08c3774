/** The hosts that sandboxed commands may reach. */
import { type HostRule, hostRule } from "../../../lib/host-rule.ts";
import { TroupeError } from "../../../protocol/errors.ts";

const MAX_RULES = 500;

/** Parses `host`, `host:port`, `*.host`, `*.host:port` (default ports: 80 and 443). */
export function hostRules(texts: readonly string[]): readonly HostRule[] {
  if (texts.length > MAX_RULES) throw bad(`more than ${MAX_RULES} hosts`, "Use *.domain for many hosts of one domain.");
  return texts.map((text) => {
    const rule = hostRule(text);
    if (rule === undefined) throw bad(`"${text}"`, "Write host, host:port, *.domain or *.domain:port.");
    return rule;
  });
}

export function allows(rules: readonly HostRule[], host: string, port: number): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  return rules.some(
    (rule) => rule.ports.includes(port) && (rule.below ? name.endsWith(`.${rule.name}`) : name === rule.name),
  );
}

/** Like `allows`, but only by a rule without a wildcard: the owner of a domain decides what is below it. */
export function names(rules: readonly HostRule[], host: string, port: number): boolean {
  return allows(
    rules.filter(({ below }) => !below),
    host,
    port,
  );
}

function bad(what: string, hint: string): TroupeError {
  return new TroupeError("configuration", `Allowed hosts of the sandbox: ${what} cannot be used.`, { hint });
}
