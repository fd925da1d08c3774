/** Validates texts for the board: short, plain, without secrets. */
import type { Redactor } from "../../lib/redact/redact.ts";
import { sanitise, sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type BoardText, boardLimits } from "./board.ts";

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/**
 * Returns the cleaned text or throws. With `masked`, secrets are masked (for agents). With `refused`, a secret throws
 * (for users). A secret spread over both fields always throws.
 */
export function requireText(given: BoardText, how: { redactor: Redactor; secrets: "masked" | "refused" }): BoardText {
  const { redactor } = how;
  const masked = redactor.json(given);
  const isSecret = masked.content !== given.content || masked.description !== given.description;
  const isSpread = redactor.holdsSecret(`${masked.description} ${masked.content}`);
  if (isSpread || (isSecret && how.secrets === "refused"))
    throw refused("it contains a secret", "Leave the secret out.");
  const name = requireName(masked.name);
  const text = { name, description: plainLine(masked.description), content: sanitise(masked.content).trim() };
  for (const field of ["description", "content"] as const) {
    const { length } = text[field];
    if (length === 0) throw refused(`its ${field === "content" ? "text" : field} is empty`, "Say what it is about.");
    if (length <= boardLimits[field]) continue;
    const problem = `its ${field === "content" ? "text" : field} has ${length} characters`;
    throw refused(problem, `At most ${boardLimits[field]} are allowed.`);
  }
  return text;
}

function requireName(name: string): string {
  if (NAME.test(name) && name.length <= boardLimits.name) return name;
  const hint = `Use lower-case words joined by hyphens, at most ${boardLimits.name} characters: test-command.`;
  throw new TroupeError("usage", "This is not a valid name for a board item.", { hint });
}

const plainLine = (text: string): string => sanitiseLine(text).replace(/\s+/g, " ").trim();

function refused(problem: string, hint: string): TroupeError {
  return new TroupeError("usage", `This cannot go on the board: ${problem}.`, { hint });
}
