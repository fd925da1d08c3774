/** The methods that only the dashboard has. */
import type { Disk } from "../lib/node/disk.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Boot, SearchHit } from "./api.ts";
import { type OwnMethod, requireText } from "./calls.ts";
import type { LiveSessions } from "./live-sessions.ts";
import type { SessionRows } from "./session-rows.ts";

export interface OwnParts {
  readonly runtime: Runtime;
  readonly rows: SessionRows;
  readonly live: LiveSessions;
  readonly cwd: string;
  readonly version: string;
  readonly disk: Disk;
}

const MAX_HITS = 50;

export function ownMethods({ runtime, rows, live, cwd, version }: OwnParts): Readonly<Record<string, OwnMethod>> {
  return {
    "web.boot": async (): Promise<Boot> => ({ version, home: runtime.home, cwd }),
    "web.sessions": () => rows.rows(),
    "web.create": async (params) => {
      const { cwd: folder, model } = params;
      const prompt = requireText(params, "prompt");
      const sessionId = await live.create({
        cwd: typeof folder === "string" && folder !== "" ? folder : undefined,
        model: typeof model === "string" && model !== "" ? model : undefined,
      });
      await live.request(sessionId, "session.send", { prompt });
      return { sessionId };
    },
    "web.search": async (params): Promise<readonly SearchHit[]> => {
      const found = await runtime.past.search({ words: requireText(params, "words"), limit: MAX_HITS });
      return found.map(({ sessionId, timestamp, source, snippet, title = "" }) => {
        return { sessionId, name: title, at: timestamp, kind: source, text: snippet };
      });
    },
  };
}
