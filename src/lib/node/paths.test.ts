import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  isInside,
  type OpenFolder,
  openFolderByName,
  openForReading,
  PathError,
  type PathScope,
  readDirectory,
} from "./paths.ts";

let base: string;
let root: string;
let outside: string;

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "troupe-paths-")));
  root = join(base, "work");
  outside = join(base, "work-evil");
  mkdirSync(join(root, "folder", "inner"), { recursive: true });
  mkdirSync(outside);
  writeFileSync(join(root, "file.txt"), "inside\n");
  writeFileSync(join(root, "folder", "nested.txt"), "nested\n");
  writeFileSync(join(outside, "secret.txt"), "SECRET\n");
  symlinkSync("file.txt", join(root, "link-file"));
  symlinkSync("folder", join(root, "link-folder"));
  symlinkSync(join(outside, "secret.txt"), join(root, "link-secret"));
  symlinkSync("../work-evil", join(root, "link-outside"));
  symlinkSync("nowhere", join(root, "dangling"));
  symlinkSync(join(outside, "nowhere"), join(root, "dangling-outside"));
  symlinkSync("loop-b", join(root, "loop-a"));
  symlinkSync("loop-a", join(root, "loop-b"));
  symlinkSync("/proc/self/environ", join(root, "environ"));
  chain("chain-40-", 40, "file.txt");
  chain("chain-41-", 41, "file.txt");
  chain("chain-out-", 40, join(outside, "secret.txt"));
  writeFileSync(join(root, "locked.txt"), "locked");
  chmodSync(join(root, "locked.txt"), 0);
  execFileSync("mkfifo", [join(root, "pipe")]);
  symlinkSync("pipe", join(root, "link-pipe"));
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

const ways: [name: string, openFolder: OpenFolder | undefined][] = [
  ["through descriptors", undefined],
  ["by name", openFolderByName],
];

describe.each(ways)("opening %s", (_, openFolder) => {
  const scope = (changes: Partial<PathScope> = {}): PathScope => ({
    cwd: root,
    roots: [root],
    ...(openFolder === undefined ? {} : { openFolder }),
    ...changes,
  });

  async function read(path: string, changes: Partial<PathScope> = {}): Promise<string> {
    const opened = await openForReading(path, scope(changes));
    try {
      if (opened.kind === "directory") return (await readDirectory(opened)).names.join(" ");
      return await opened.handle.readFile("utf8");
    } finally {
      await opened.handle.close();
    }
  }

  async function refusal(
    path: string,
    changes: Partial<PathScope> = {},
  ): Promise<{ problem: string; message: string }> {
    const error: unknown = await read(path, changes).catch((reason: unknown) => reason);
    if (!(error instanceof PathError)) throw new Error(`not refused: ${String(error)}`);
    return { problem: error.problem, message: error.message };
  }

  test("opening finds files and folders inside the roots, also through links that stay inside", async () => {
    expect(await read("file.txt")).toBe("inside\n");
    expect(await read(join(root, "folder/../file.txt"))).toBe("inside\n");
    expect(await read("link-file")).toBe("inside\n");
    expect(await read("link-folder/nested.txt")).toBe("nested\n");
    expect(await read("link-folder")).toBe("inner nested.txt");
    expect(await read("chain-40-0")).toBe("inside\n");
    expect(await read(root)).toContain("file.txt");
    expect(await read(".")).toContain("file.txt");
  });

  test("opening returns the absolute path as the caller named it, without following links", async () => {
    const opened = await openForReading("link-folder/nested.txt", scope());
    await opened.handle.close();
    expect(opened.path).toBe(join(root, "link-folder/nested.txt"));
  });

  test.each([
    "../work-evil/secret.txt",
    "link-secret",
    "link-outside/secret.txt",
    "chain-out-0",
    "dangling-outside",
    "..",
    "/",
    "/etc/passwd",
    "/no/such/thing",
    "../no-such-folder/file",
    "../work-evil/no-such-file",
    "link-outside/no-such-file",
  ])("opening refuses %s and says how to allow it", async (path) => {
    const { problem, message } = await refusal(path);
    expect(problem).toBe("outside");
    expect(message).toMatch(/^Path .+ outside the allowed folders\. .+ --add-dir .+ or --allow-all-paths\.$/);
    expect(message).not.toContain("SECRET");
  });

  test("opening names the requested path, its target and the folder to add", async () => {
    expect(await refusal("link-secret")).toEqual({
      problem: "outside",
      message:
        `Path ${root}/link-secret leads to ${outside}/secret.txt, which is outside the allowed folders. ` +
        `The user can allow it with --add-dir ${outside} or --allow-all-paths.`,
    });
  });

  test("opening has no limit without roots, except the system's own folders", async () => {
    expect(await read("link-secret", { roots: [] })).toBe("SECRET\n");
    expect(await read(join(outside, "secret.txt"), { roots: [] })).toBe("SECRET\n");
    for (const path of ["/proc/self/environ", "/proc", "/dev/zero", "/dev/fd/0", "/sys/kernel", "environ"]) {
      expect((await refusal(path, { roots: [] })).problem).toBe("special");
    }
    expect((await refusal("/proc/self/root/etc/passwd", { roots: ["/"] })).problem).toBe("special");
  });

  test.each(["missing.txt", "missing/deeper/file", "dangling", "file.txt/below", "~/file.txt"])(
    "opening reports that %s does not exist",
    async (path) => {
      expect(await refusal(path)).toEqual({
        problem: "missing",
        message: `Path ${join(root, path)} does not exist. Please provide a valid path.`,
      });
    },
  );

  test("opening refuses paths that are empty, too long, on the network or contain a NUL character", async () => {
    expect((await refusal("")).message).toBe("The path is empty. Please provide a valid path.");
    expect((await refusal("a\0b")).message).toBe('The path "a\\u0000b" contains a NUL character.');
    expect((await refusal("x/".repeat(3000))).message).toMatch(/longer than 4096 bytes\.$/);
    expect((await refusal("y".repeat(300))).message).toMatch(/has a name that is too long\.$/);
    for (const path of ["//server/share", "\\\\server\\share", "\\\\?\\C:\\x"]) {
      expect((await refusal(path)).message).toMatch(/^Network paths such as .+ are not supported\.$/);
    }
  });

  test("opening refuses chains of more than 40 links, and links in a circle", async () => {
    const message = (name: string) => `Path ${root}/${name} leads through more than 40 symbolic links.`;
    expect(await refusal("chain-41-0")).toEqual({ problem: "invalid", message: message("chain-41-0") });
    expect(await refusal("loop-a")).toEqual({ problem: "invalid", message: message("loop-a") });
    expect((await refusal("loop-a/file")).problem).toBe("invalid");
  });

  test("opening never waits for a pipe and never opens a socket", { timeout: 2000 }, async () => {
    const server = createServer().listen(join(root, "socket"));
    await new Promise((ready) => server.once("listening", ready));
    try {
      expect(await refusal("pipe")).toEqual({
        problem: "special",
        message: `Path ${root}/pipe is a named pipe; only files and folders can be opened.`,
      });
      expect((await refusal("link-pipe")).problem).toBe("special");
      expect((await refusal("socket")).message).toContain("is a socket");
    } finally {
      await new Promise((closed) => server.close(closed));
    }
  });

  test("opening refuses files above the size the caller allows", async () => {
    await expect(openForReading("file.txt", { ...scope(), maxBytes: 6 })).rejects.toThrow(
      `${root}/file.txt has 7 bytes, more than the 6 that can be read at once.`,
    );
    const opened = await openForReading("file.txt", { ...scope(), maxBytes: 7 });
    await opened.handle.close();
  });

  test.skipIf(process.getuid?.() === 0)("opening reports missing permission", async () => {
    const path = join(root, "locked.txt");
    expect(await refusal(path)).toEqual({
      problem: "unreadable",
      message: `Path ${path} cannot be read: permission denied.`,
    });
  });
});

test("a folder whose name only starts like a root is not inside the root", () => {
  expect(isInside("/place-evil/x", ["/place"])).toBe(false);
  expect(isInside("/place/x", ["/place"])).toBe(true);
  expect(isInside("/place", ["/place"])).toBe(true);
  expect(isInside("/anything", ["/"])).toBe(true);
});

test("refused paths leave no descriptor open", async () => {
  if (process.platform !== "linux") return;
  const count = async () => (await import("node:fs")).readdirSync("/proc/self/fd").length;
  const before = await count();
  for (let round = 0; round < 12; round++) {
    for (const path of ["link-secret", "missing.txt", "pipe", "loop-a"]) {
      await openForReading(path, { cwd: root, roots: [root] }).catch(() => {});
    }
  }
  expect(await count()).toBeLessThan(before + 10);
});

function chain(prefix: string, hops: number, target: string): void {
  for (let hop = 0; hop < hops; hop++) {
    symlinkSync(hop === hops - 1 ? target : `${prefix}${hop + 1}`, join(root, `${prefix}${hop}`));
  }
}
