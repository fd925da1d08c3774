// Many agents side by side: one message starts them all, each reads a file and answers. The floor holds the same
// conversations in one process. The model takes its time for each answer, so the least is twice that.
export const AGENTS = 32;
const THINKING_MS = 300;

/** What the mock plays for a conversation of this scenario; undefined when it is none. */
export function decideCompany(marker, results, { view }) {
  const [, kind, amount] = /^(company|part):(\d+)$/.exec(marker) ?? [];
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

export const companyScenario = (figure) => ({
  name: "company",
  runs: (reps) => reps,
  measure: true,
  prompt: `Let each look at its part. [[bench:company:${AGENTS}]]`,
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

function taskCall(part) {
  const words = { description: "Look at a part", prompt: `Look at your part. [[bench:part:${part}]]` };
  const args = { ...words, agent_type: "general-purpose", name: `part ${part}`, mode: "sync" };
  return { name: "task", arguments: JSON.stringify(args) };
}
