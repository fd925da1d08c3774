/** The notice to an agent when a command it no longer waits for has ended. */
import { defined } from "../../lib/defined.ts";
import { clip, sanitise } from "../../lib/text.ts";
import type { FinishedCommand } from "./shells.ts";

/** As in the event `system.notification`. */
export interface FinishedNotice {
  readonly kind:
    | {
        readonly type: "shell_completed";
        readonly shellId: string;
        readonly exitCode?: number;
        readonly description?: string;
      }
    | { readonly type: "shell_detached_completed"; readonly shellId: string; readonly description?: string };
  readonly content: string;
}

const MAX_CHARACTERS = 120;

export function finishedNotice(finished: FinishedCommand): FinishedNotice {
  const { shellId, exitCode } = finished;
  const description = oneLine(finished.description);
  const name = description === "" ? `Shell command ${shellId}` : `Shell command "${description}"`;
  const end = exitCode === undefined ? "has ended" : `has finished with exit code ${exitCode}`;
  const detached = finished.mode === "detached" ? " (detached)" : "";
  const how = `Use read_bash with shellId "${shellId}" to read its output.`;
  const about = { shellId, ...(description !== "" && { description }) };
  return {
    kind:
      finished.mode === "detached"
        ? { type: "shell_detached_completed", ...about }
        : { type: "shell_completed", ...about, ...defined({ exitCode }) },
    content: `<system_notification>\n${name}${detached} ${end}. ${how}\n</system_notification>`,
  };
}

/** Text of a model between our tags: it must not contain tags or line breaks. */
function oneLine(text: string): string {
  return clip(sanitise(text).replace(/\s+/g, " ").replace(/[<>"]/g, "'").trim(), MAX_CHARACTERS);
}
