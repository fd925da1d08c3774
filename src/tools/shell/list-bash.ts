import * as z from "zod";
import { defineTool, fixed } from "../tool.ts";
import description from "./list-bash.md";
import { listText } from "./reply-text.ts";
import { shellsOf } from "./shells.ts";

export const listBash = defineTool({
  name: "list_bash",
  companionOf: "bash",
  description,
  input: fixed("list_bash", () => z.object({})),
  readOnly: true,
  async run(_, context) {
    return { content: listText(shellsOf(context).list()) };
  },
});
