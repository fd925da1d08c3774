import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";

export const rewind = defineCommand({
  name: "rewind",
  summary: "Go back to before a message, optionally with the files",
  harmless: "alone",
  argumentHint: "[<number> [files] | restore [files]]",
  needs: ["history"],
  async run(argumentText, { history }) {
    const [what = "", files, ...more] = argumentText.split(/\s+/).filter(Boolean);
    const isFit = (what === "" || what === "restore" || /^\d{1,6}$/.test(what)) && more.length === 0;
    if (!isFit || (files !== undefined && files !== "files")) {
      throw new TroupeError(
        "usage",
        "/rewind takes the number of a message or restore, optionally followed by files.",
        {
          hint: "/rewind alone lists the messages.",
        },
      );
    }
    const options = { files: files === "files" };
    if (what === "") return { kind: "completed", text: await history.list() };
    const text = what === "restore" ? await history.restore(options) : await history.rewind(Number(what), options);
    return { kind: "completed", text };
  },
});
