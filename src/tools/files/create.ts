import * as z from "zod";
import { accessFor, type ChangeRequest, changeFiles, refuseUnread } from "../edit/change-files.ts";
import { encodeText } from "../edit/text-content.ts";
import { defineTool, fixed, type InputOf } from "../tool.ts";
import description from "./create.md";

const input = fixed("create", () =>
  z.object({
    path: z.string().describe("File to write; absolute, or relative to the working folder"),
    file_text: z.string().describe("The whole content of the file"),
  }),
);

export const create = defineTool({
  name: "create",
  accessKind: "write",
  description,
  input,
  access: (call, context) => accessFor(requestOf(call), context),
  async run(call, context) {
    const { planned, diff } = await changeFiles(requestOf(call), context);
    const path = planned[0]?.found.path ?? call.path;
    return {
      content: `Created file ${path} with ${call.file_text.length} characters`,
      detailedContent: diff,
    };
  },
});

function requestOf({ path, file_text }: InputOf<typeof input>): ChangeRequest {
  return {
    intention: "Create file",
    paths: [path],
    async plan(look, files) {
      const found = await look(path);
      refuseUnread(found, files);
      return [{ found, after: encodeText(file_text) }];
    },
  };
}
