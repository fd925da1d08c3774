import type { Command } from "./command.ts";

export const submit: Command = {
  name: "submit",
  group: "Many machines",
  summary: "submit a prompt to the workers of a database",
  takesSessionFlags: true,
  flags: {
    database: true,
    prompt: "the prompt",
    pool: true,
    repo: true,
    ref: true,
    tenant: true,
    "on-loss": true,
    ask: "let questions, plans and calls that no rule decides wait for a response: troupe cluster answer",
    wait: true,
    timeout: "with --wait: stop waiting after this time; the job continues (default: 24 hours)",
    json: "print one JSON object",
  },
  notes: [
    "Flags that allow something (--allow-tool, --add-dir, --plugin-dir, …) are refused: pass them to the workers.",
  ],
  examples: [
    ['troupe submit -p "Fix the flaky test" --repo https://git.example.com/app.git --wait', "and print the answer"],
    ['troupe submit -p "And now the docs" --session-id 3f2a91c0-…', "another message to a submitted session"],
  ],
  docs: "how-to/many-machines",
  load: async () => (await import("../cluster/submit.ts")).submitCommand,
};
