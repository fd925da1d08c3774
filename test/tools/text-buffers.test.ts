import { readFile, rename, stat, symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/index.ts";
import { unsavedContent } from "../../src/tools/text-buffers.ts";

/** Reads `work/a.txt` by name, as an editor does, after `meanwhile`. */
async function held(files: Record<string, string>, meanwhile: (at: (path: string) => string) => Promise<void>) {
  await using folder = await tempFolder({ "secret.txt": "secret\n", ...files });
  const realPath = folder.at("work/a.txt");
  const asked: string[] = [];
  const content = await unsavedContent(
    { realPath, stat: await stat(realPath), content: await readFile(realPath) },
    {
      roots: [folder.at("work")],
      signal: new AbortController().signal,
      buffers: {
        isOffered: true,
        async read(path) {
          asked.push(path);
          await meanwhile((name) => folder.at(name));
          return `${await readFile(path, "utf8")}unsaved`;
        },
        write: async () => false,
      },
    },
  );
  return { text: content?.toString(), asked: asked.length };
}

describe("text that a client has not saved", () => {
  it("unsaved text of a client replaces the text on disk", async () => {
    expect(await held({ "work/a.txt": "one\n" }, async () => undefined)).toEqual({ text: "one\nunsaved", asked: 1 });
  });

  it("unsaved text keeps the byte order mark and the line ends of the file", async () => {
    const { text } = await held({ "work/a.txt": "\ufeffone\r\n" }, async () => undefined);
    expect(text).toBe("\ufeffone\r\nunsaved");
  });

  it("unsaved text is dropped when the file was a link while the client read it, even if it was put back", async () => {
    const swapped = await held({ "work/a.txt": "one\n" }, async (at) => {
      await rename(at("work/a.txt"), at("work/b.txt"));
      await symlink(at("secret.txt"), at("work/a.txt"));
    });
    expect(swapped).toEqual({ text: undefined, asked: 1 });
    const back = await held({ "work/a.txt": "one\n" }, async (at) => {
      await rename(at("work/a.txt"), at("work/b.txt"));
      await rename(at("work/b.txt"), at("work/a.txt"));
    });
    expect(back).toEqual({ text: undefined, asked: 1 });
  });

  it("unsaved text is dropped when a folder above the file was exchanged in the meantime", async () => {
    const files = { "work/a.txt": "one\n", "work/sub/x.txt": "x\n" };
    const { text } = await held(files, async (at) => rename(at("work/sub"), at("work/other")));
    expect(text).toBeUndefined();
  });

  it("unsaved text is dropped without an error when the file's folder disappeared in the meantime", async () => {
    await using folder = await tempFolder({ "work/sub/a.txt": "one\n" });
    const realPath = folder.at("work/sub/a.txt");
    const content = await unsavedContent(
      { realPath, stat: await stat(realPath), content: await readFile(realPath) },
      {
        roots: [folder.at("work")],
        signal: new AbortController().signal,
        buffers: {
          isOffered: true,
          async read() {
            await rename(folder.at("work/sub"), folder.at("work/other"));
            return "unsaved";
          },
          write: async () => false,
        },
      },
    );
    expect(content).toBeUndefined();
  });

  it("unsaved text is not requested for a binary file", async () => {
    expect(await held({ "work/a.txt": "one\0" }, async () => undefined)).toEqual({ text: undefined, asked: 0 });
  });
});
