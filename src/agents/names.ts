/** Agent names. An agent is found by name or file id; case and word separators are ignored. */
import { nearest } from "../lib/text.ts";
import { type AgentDefinition, MAX_NAME_CHARACTERS } from "./agent.ts";

type Named = Pick<AgentDefinition, "id" | "name" | "pluginName">;

/** Matches nearly every name. Tested first because compiling the Unicode expression takes half a millisecond. */
const USUAL_NAME = /^[A-Za-z0-9][\w .-]*$/;
const NAME = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._()&+#'/-]*$/u;

/** Returns the reason why an agent cannot have this name, or undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (name.length > MAX_NAME_CHARACTERS) return `it has more than ${MAX_NAME_CHARACTERS} characters`;
  return USUAL_NAME.test(name) || NAME.test(name)
    ? undefined
    : "it must begin with a letter or digit and contain only letters, digits and . _ - /";
}

/** Returns the key that identifies an agent: agents with the same normalised name are the same agent. Idempotent. */
export function normaliseName(name: string): string {
  return name
    .toLowerCase()
    .normalize("NFC")
    .trim()
    .replace(/[\s_]+/gu, "-");
}

/** Returns the normalised keys under which an agent is found. */
export function keysOf(agent: Named): string[] {
  return [...new Set([normaliseName(agent.name), normaliseName(agent.id)])];
}

/** Finds an agent. Prefers an exact match, then a normalised one, then one that ignores dashes if it is unique. */
export function findAgent<T extends Named>(wanted: string, agents: readonly T[]): T | undefined {
  const exact = agents.find(({ name }) => name === wanted) ?? agents.find(({ id }) => id === wanted);
  if (exact) return exact;
  const key = normaliseName(wanted);
  const close = agents.find((agent) => [...keysOf(agent), ...ofPlugin(agent)].includes(key));
  if (close || key === "") return close;
  const squeezed = agents.filter((agent) => keysOf(agent).some((one) => squeeze(one) === squeeze(key)));
  return squeezed.length === 1 ? squeezed[0] : undefined;
}

/** Returns the closest existing name for an unknown one, or undefined. */
export function suggestAgent(wanted: string, agents: readonly Named[]): string | undefined {
  const key = normaliseName(wanted);
  const close = nearest(key, agents.flatMap(keysOf));
  return agents.find((agent) => close !== undefined && keysOf(agent).includes(close))?.name;
}

/** Returns `plugin:agent` keys, a notation that other products use. */
function ofPlugin({ pluginName, ...agent }: Named): string[] {
  return pluginName === undefined ? [] : keysOf(agent).map((key) => `${normaliseName(pluginName)}:${key}`);
}

const squeeze = (key: string): string => key.replaceAll("-", "");
