/** The draft in the user's own editor (`$VISUAL`, `$EDITOR`). */
import { spawn } from "node:child_process";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeDisk, writeNewFile } from "../../lib/node/disk.ts";
import type { Host } from "../host.ts";

/** Never rejects: a draft that cannot be edited stays as it is. */
export async function editExternally(app: Host): Promise<void> {
  const { environment, tty } = app.options;
  const command = environment.VISUAL || environment.EDITOR || "vi";
  try {
    const folder = await mkdtemp(join(tmpdir(), "troupe-draft-"));
    const path = join(folder, "prompt.md");
    await writeNewFile(nodeDisk, path, [Buffer.from(app.editor.text)]);
    const code = await tty.lend(app.screen, () => run(command, path));
    const text = await readFile(path, "utf8");
    await nodeDisk.remove(folder).catch(() => undefined);
    if (code === 0) app.editor.set(text.replace(/\n$/, ""));
    else app.hint(`${command} ended with code ${code}; the draft is unchanged`);
  } catch (error) {
    app.fail(error);
  }
}

/** `$EDITOR` may have arguments; a shell reads it, as git does. */
function run(command: string, path: string): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", `${command} "$1"`, "sh", path], { stdio: "inherit" });
    child.once("error", reject);
    child.once("close", resolve);
  });
}
