/** How agents are called: by name or file id, whatever the case and whatever stands between the words. */
import { nearest } from "../lib/text.ts";
import { type AgentDefinition, MAX_NAME_CHARACTERS } from "./agent.ts";

type Named = Pick<AgentDefinition, "id" | "name" | "pluginName">;

/** Nearly every name; tried first, because the general one takes half a millisecond to get ready. */
const USUAL_NAME = /^[A-Za-z0-9][\w .-]*$/;
const NAME = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._()&+#'/-]*$/u;

/** Why this cannot be the name of an agent, if it cannot. */
export function nameProblem(name: string): string | undefined {
  if (name.length > MAX_NAME_CHARACTERS) return `it has more than ${MAX_NAME_CHARACTERS} characters`;
  return USUAL_NAME.test(name) || NAME.test(name)
    ? undefined
    : "it must begin with a letter or digit and hold only letters, digits and . _ - /";
}

/** Two agents with the same normalised name are one. Doing it twice is doing it once. */
export function normaliseName(name: string): string {
  return name
    .toLowerCase()
    .normalize("NFC")
    .trim()
    .replace(/[\s_]+/gu, "-");
}

/** Every normalised name an agent answers to. */
export function keysOf(agent: Named): string[] {
  return [...new Set([normaliseName(agent.name), normaliseName(agent.id)])];
}

/** Exact before normalised, and that before a name in which even the dashes are left out, if only one is meant. */
export function findAgent<T extends Named>(wanted: string, agents: readonly T[]): T | undefined {
  const exact = agents.find(({ name }) => name === wanted) ?? agents.find(({ id }) => id === wanted);
  if (exact) return exact;
  const key = normaliseName(wanted);
  const close = agents.find((agent) => [...keysOf(agent), ...ofPlugin(agent)].includes(key));
  if (close || key === "") return close;
  const squeezed = agents.filter((agent) => keysOf(agent).some((one) => squeeze(one) === squeeze(key)));
  return squeezed.length === 1 ? squeezed[0] : undefined;
}

/** What was probably meant by a name that nobody has. */
export function suggestAgent(wanted: string, agents: readonly Named[]): string | undefined {
  const key = normaliseName(wanted);
  const close = nearest(key, agents.flatMap(keysOf));
  return agents.find((agent) => close !== undefined && keysOf(agent).includes(close))?.name;
}

/** `plugin:agent`, as other programs write it. */
function ofPlugin({ pluginName, ...agent }: Named): string[] {
  return pluginName === undefined ? [] : keysOf(agent).map((key) => `${normaliseName(pluginName)}:${key}`);
}

const squeeze = (key: string): string => key.replaceAll("-", "");
