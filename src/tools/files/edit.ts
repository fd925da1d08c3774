import * as z from "zod";
import { accessFor, type ChangeRequest, changeFiles, missing, refuseStale } from "../edit/change-files.ts";
import { replaceText } from "../edit/replace-text.ts";
import { decodeText, encodeText } from "../edit/text-content.ts";
import { defineTool, fixed, type InputOf } from "../tool.ts";
import description from "./edit.md";

const input = fixed("edit", () =>
  z.object({
    path: z.string().describe("File to change; absolute, or relative to the working folder"),
    old_str: z.string().describe("The text to replace"),
    new_str: z.string().describe("The text to put there"),
  }),
);

export const edit = defineTool({
  name: "edit",
  accessKind: "write",
  description,
  input,
  access: (call, context) => accessFor(requestOf(call), context),
  async run(call, context) {
    const { planned, diff } = await changeFiles(requestOf(call), context);
    return { content: `File ${planned[0]?.found.path ?? call.path} updated with changes.`, detailedContent: diff };
  },
});

/** Does not require a previous read: text that matches exactly once proves knowledge of the content. */
function requestOf({ path, old_str, new_str }: InputOf<typeof input>): ChangeRequest {
  return {
    intention: "Edit file",
    paths: [path],
    shownBy: "edit",
    async plan(look, files) {
      const found = await look(path);
      if (found.before === "missing") throw missing(found.path);
      refuseStale(found, files);
      const text = decodeText(found.before.content, found.path);
      const after = replaceText(text, { oldText: old_str, newText: new_str, path: found.path });
      return [{ found, after: encodeText(after) }];
    },
  };
}
