// Many agents side by side: one message starts them all, each reads a file and answers. The floor holds the same
// conversations in one process. The model takes its time for each answer, so the least is twice that.
export const AGENTS = 32;
const THINKING_MS = 300;

/** What the mock plays for a conversation of this scenario; undefined when it is none. */
export function decideManyAgents(marker, results, { view }) {
  const [, kind, amount] = /^(agents|part):(\d+)$/.exec(marker) ?? [];
  if (kind === "part") {
    if (results.length === 0) return { ...view(Number(amount)), delayMs: THINKING_MS };
    return { deltas: [partOf(amount)], delayMs: THINKING_MS };
  }
  if (kind === undefined) return undefined;
  if (results.length === 0) return { calls: Array.from({ length: Number(amount) }, (_, part) => taskCall(part)) };
  // Whoever is done first may be heard first.
  const heard = (part) => results.some((text) => text.includes(partOf(part)));
  const silent = Array.from({ length: Number(amount) }, (_, part) => part).find((part) => !heard(part));
  if (silent !== undefined) throw new Error(`agent ${silent} did not give its answer`);
  return { deltas: ["done"] };
}

/**
 * The same without thinking, for sessions that may lose their process: whoever has not answered is started again. The
 * first agent runs a command that leaves a line outside of the session; a new start has a new number, so each line
 * belongs to one call. `member:<round * 100 + part>`.
 */
export function decideTeam(marker, results, { view, effect }) {
  const [, kind, amount] = /^(team|member):(\d+)$/.exec(marker) ?? [];
  const number = Number(amount);
  if (kind === "member") {
    if (results.length > 0) return { deltas: [memberOf(number % 100)] };
    return number % 100 === 0 ? effect(number) : view(number % 100);
  }
  if (kind === undefined) return undefined;
  const heard = (part) => results.some((text) => text.includes(memberOf(part)));
  const silent = Array.from({ length: number }, (_, part) => part).filter((part) => !heard(part));
  if (silent.length === 0) return { deltas: ["done"] };
  return { calls: silent.map((part) => taskCall(part, `member:${results.length * 100 + part}`)) };
}

const memberOf = (part) => `member ${part} has ended`;

export const manyAgentsScenario = (figure) => ({
  name: "many-agents",
  runs: (reps) => reps,
  measure: true,
  prompt: `Let each look at its part. [[bench:agents:${AGENTS}]]`,
  requests: 2 + 2 * AGENTS,
  figures: (samples) => [
    figure(`${AGENTS} agents at once, exec to exit`, "ms", samples, ({ wallMs }) => wallMs, {
      kind: "ratio",
      limit: 1.5,
    }),
    figure("CPU", "ms", samples, ({ cpuMs }) => cpuMs),
    figure("peak memory", "MB", samples, ({ peakBytes }) => peakBytes / 1e6),
  ],
});

const partOf = (part) => `part ${part} is read`;

function taskCall(part, marker = `part:${part}`) {
  const words = { description: "Look at a part", prompt: `Look at your part. [[bench:${marker}]]` };
  const args = { ...words, agent_type: "general-purpose", name: `part ${part}`, mode: "sync" };
  return { name: "task", arguments: JSON.stringify(args) };
}
