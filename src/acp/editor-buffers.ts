import * as z from "zod";
import type { Peer } from "../protocol/rpc/peer.ts";
import type { TextBuffers } from "../sdk/config.ts";
import type { Abilities } from "./abilities.ts";

const ANSWER_MS = 8_000;

/**
 * The texts of the files that an editor has open. Rejects if the editor cannot read or write a file; the file on disk
 * is used then.
 */
export function editorBuffers(
  sessionId: string,
  { peer, abilities }: { readonly peer: Peer; readonly abilities: Abilities },
): TextBuffers {
  const ask = (method: string, params: object) => peer.ask(method, { sessionId, ...params }, { timeoutMs: ANSWER_MS });
  return {
    read: async (path) => fileText().parse(await ask("fs/read_text_file", { path })).content,
    async write(path, content) {
      if (!abilities.writesFiles) return false;
      await ask("fs/write_text_file", { path, content });
      return true;
    },
  };
}

const fileText = () => z.looseObject({ content: z.string() });
