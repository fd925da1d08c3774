import { clip } from "../lib/text.ts";
import type { WorkingDirectory } from "../protocol/event.ts";
import introduction from "./system-prompt.md";

/** Nothing unbounded enters a model request: each fact about the place is cut at this length. */
const MAX_FACT_CHARACTERS = 500;

/** What the main agent is told before the first message. The same for the same place, so that prompt caches hold. */
export function systemPrompt(place: { context: WorkingDirectory; platform: string; tools: readonly string[] }): string {
  const { cwd, gitRoot, repository, branch } = place.context;
  const facts: [string, string | undefined][] = [
    ["Working folder", cwd],
    ["Git root", gitRoot ?? "none: this folder is not in a git repository"],
    ["Repository", repository],
    ["Branch", branch],
    ["Operating system", place.platform],
    ["Tools", place.tools.join(", ")],
  ];
  const lines = facts.flatMap(([name, value]) => (value ? [`- ${name}: ${clip(value, MAX_FACT_CHARACTERS)}`] : []));
  return `${introduction.trim()}\n\nWhere you are\n${lines.join("\n")}\n`;
}
