import { readFile, realpath, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { withEditor } from "./stage.ts";

const fs = { fs: { readTextFile: true, writeTextFile: true } };
const lastRequest = (editor: { model: { requests: readonly { body: unknown }[] } }): string =>
  JSON.stringify(editor.model.requests.at(-1)?.body);

describe("files that the editor has open", () => {
  it("an editor's unsaved text is shown to the agent and labelled as unsaved", async () => {
    const steps = [calls(["view", { path: "a.txt" }]), says("Read.")];
    await withEditor({ steps, capabilities: fs }, async (editor) => {
      editor.buffers.set(join(await realpath(editor.cwd), "a.txt"), "one\nunsaved\n");
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Read it.");
      expect(lastRequest(editor)).toContain("2. unsaved");
      expect(lastRequest(editor)).toContain("has not saved this text");
    });
  });

  it("an editor's unsaved text is edited, shown as a diff, and written by the editor", async () => {
    const steps = [calls(["edit", { path: "a.txt", old_str: "unsaved", new_str: "changed" }]), says("Done.")];
    await withEditor({ steps, capabilities: fs }, async (editor) => {
      const path = join(await realpath(editor.cwd), "a.txt");
      editor.buffers.set(path, "one\nunsaved\n");
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Change it.");
      expect(editor.asked[0]?.toolCall.content?.at(-1)).toMatchObject({
        type: "diff",
        oldText: "one\nunsaved\n",
        newText: "one\nchanged\n",
      });
      expect(editor.files.filter(({ method }) => method === "write")).toEqual([{ method: "write", path }]);
      expect(await readFile(path, "utf8")).toBe("one\nchanged\n");
    });
  });

  it("an editor's file without other content is written on disk, and keeps its line ends", async () => {
    const steps = [calls(["edit", { path: "b.txt", old_str: "two", new_str: "2" }]), says("Done.")];
    const files = { "work/b.txt": "one\r\ntwo\r\n" };
    await withEditor({ steps, files, capabilities: fs }, async (editor) => {
      const path = join(await realpath(editor.cwd), "b.txt");
      editor.buffers.set(path, "one\ntwo\n");
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Change it.");
      expect(editor.files).toContainEqual({ method: "read", path });
      expect(editor.files.some(({ method }) => method === "write")).toBe(false);
      expect(await readFile(path, "utf8")).toBe("one\r\n2\r\n");
    });
  });

  it("an editor that only reads files gets unsaved text written to disk with the change", async () => {
    const steps = [calls(["edit", { path: "a.txt", old_str: "unsaved", new_str: "changed" }]), says("Done.")];
    await withEditor({ steps, capabilities: { fs: { readTextFile: true } } }, async (editor) => {
      const path = join(await realpath(editor.cwd), "a.txt");
      editor.buffers.set(path, "one\nunsaved\n");
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Change it.");
      expect(editor.files.some(({ method }) => method === "write")).toBe(false);
      expect(await readFile(path, "utf8")).toBe("one\nchanged\n");
    });
  });

  it("an editor is asked for no file outside the allowed folders, and for none without the capability", async () => {
    const steps = [calls(["view", { path: "out.txt" }]), says("No.")];
    const files = { "secret.txt": "secret\n" };
    await withEditor({ steps, files, capabilities: fs }, async (editor) => {
      await symlink(join(editor.cwd, "../secret.txt"), join(editor.cwd, "out.txt"));
      editor.choose = () => "reject";
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Read it.");
      expect(editor.files).toEqual([]);
      expect(lastRequest(editor)).not.toContain("1. secret");
    });
    await withEditor({ steps: [calls(["view", { path: "a.txt" }]), says("Read.")] }, async (editor) => {
      const { sessionId } = await editor.open();
      await editor.prompt(sessionId, "Read it.");
      expect(editor.files).toEqual([]);
      expect(lastRequest(editor)).toContain("2. two");
    });
  });
});
