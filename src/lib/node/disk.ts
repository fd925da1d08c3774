/**
 * This folder holds helpers that use Node's APIs: files, processes, git. `Disk` is the interface through which troupe
 * writes files. Tests replace it with implementations that fail, tear, delay or kill the process at operation N. Reads
 * do not use it, nor do folders that tools create, `remove-tree.ts` and the files of the sandbox.
 */
import * as fs from "node:fs";
import { dirname } from "node:path";
import { removeTree } from "./remove-tree.ts";

/** Handles are plain file descriptors: data that the kernel accepted survives the death of the process. */
export interface Disk {
  /** Creates the folder and its parents, each with mode 0700 whatever the umask. Does nothing if it exists. */
  mkdir(path: string): Promise<void>;
  /** Opens for appending. Creates the file with mode 0600 if it is missing. */
  openAppend(path: string): Promise<number>;
  /** Fails with EEXIST if the file exists. */
  openExclusive(path: string): Promise<number>;
  /** Writes all of it, or throws; data written before the failure stays written. */
  write(fd: number, data: Uint8Array): Promise<void>;
  /** After this resolves, written data survives a power cut. */
  sync(fd: number): Promise<void>;
  /** Makes a new or renamed file survive a power cut. */
  syncDirectory(path: string): Promise<void>;
  truncate(path: string, length: number): Promise<void>;
  /** Updates the modification time of a non-empty file, by the clock of its file system. */
  touch(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Creates a hard link. Fails with EEXIST if `to` exists, so that exactly one of many callers succeeds. */
  link(from: string, to: string): Promise<void>;
  /** Makes the file executable for its owner. */
  makeRunnable(path: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Removes a file, or a folder with its contents, without following links. A missing path is not an error. */
  remove(path: string): Promise<void>;
  close(fd: number): Promise<void>;
}

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

export const nodeDisk: Disk = {
  mkdir: (path) => makeDirectory(path),
  openAppend: (path) => openOrCreate(path, fs.constants.O_WRONLY | fs.constants.O_APPEND),
  openExclusive: (path) => create(path, fs.constants.O_WRONLY),
  async write(fd, data) {
    let offset = 0;
    while (offset < data.length) offset += await writeOnce(fd, data, offset);
  },
  sync: (fd) => promisify((callback) => fs.fdatasync(fd, callback)),
  async syncDirectory(path) {
    const fd = await open(path, fs.constants.O_RDONLY).catch(() => undefined);
    if (fd === undefined) return;
    await promisify((callback) => fs.fsync(fd, callback)).catch(ignoreUnsupported);
    await nodeDisk.close(fd);
  },
  truncate: (path, length) => fs.promises.truncate(path, length),
  touch: (path) => writeLastByteAgain(path),
  rename: (from, to) => fs.promises.rename(from, to),
  link: (from, to) => fs.promises.link(from, to),
  makeRunnable: (path) => fs.promises.chmod(path, DIRECTORY_MODE),
  unlink: (path) => fs.promises.unlink(path),
  remove: (path) => removeTree(path),
  close: (fd) => promisify((callback) => fs.close(fd, callback)),
};

/** Replaces a small file atomically: readers see the old content or the new, never a mixture. */
export async function replaceFile(disk: Disk, path: string, content: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${process.pid}.${Math.random().toString(36).slice(2, 10)}.tmp`;
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  try {
    await writeNewFile(disk, temporary, [bytes]);
    await disk.rename(temporary, path);
  } catch (error) {
    await disk.unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** Replaces a small file atomically before it returns, and makes its folder. Not synced: survives the end of the process, not a power cut. */
export function replaceSmallFileNow(path: string, content: Uint8Array, temporary: string): void {
  try {
    fs.mkdirSync(dirname(path), { recursive: true, mode: DIRECTORY_MODE });
    fs.writeFileSync(temporary, content, { flag: "wx", mode: FILE_MODE });
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
}

/** Fails with EEXIST if the file exists. Its content is synced when this resolves. */
export async function writeNewFile(
  disk: Disk,
  path: string,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const fd = await disk.openExclusive(path);
  try {
    for await (const piece of pieces) await disk.write(fd, piece);
    await disk.sync(fd);
  } finally {
    await disk.close(fd);
  }
}

/**
 * Removes access to a folder for everyone but its owner. Returns false if that failed, as for a folder of another user.
 */
export function makePrivate(path: string): boolean {
  try {
    fs.chmodSync(path, DIRECTORY_MODE);
    return (fs.statSync(path).mode & 0o077) === 0;
  } catch {
    return false;
  }
}

async function writeLastByteAgain(path: string): Promise<void> {
  const file = await fs.promises.open(path, fs.constants.O_RDWR);
  try {
    const last = (await file.stat()).size - 1;
    const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, last));
    if (bytesRead === 1) await file.write(buffer, 0, 1, last);
  } finally {
    await file.close();
  }
}

async function makeDirectory(path: string, parents: "missing" | "made" = "missing"): Promise<void> {
  try {
    await fs.promises.mkdir(path, { mode: DIRECTORY_MODE });
    await fs.promises.chmod(path, DIRECTORY_MODE);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const isThere = code !== "ENOENT" && fs.statSync(path, { throwIfNoEntry: false })?.isDirectory();
    if (isThere) return;
    // Some file systems always report ENOENT: after the parents were created, the operation is not repeated again.
    if (code !== "ENOENT" || dirname(path) === path || parents === "made") throw error;
    await makeDirectory(dirname(path));
    await makeDirectory(path, "made");
  }
}

async function openOrCreate(path: string, flags: number): Promise<number> {
  try {
    return await open(path, flags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return await create(path, flags).catch((reason: NodeJS.ErrnoException) => {
      if (reason.code === "EEXIST") return open(path, flags);
      throw reason;
    });
  }
}

async function create(path: string, flags: number): Promise<number> {
  const fd = await open(path, flags | fs.constants.O_CREAT | fs.constants.O_EXCL);
  await promisify((callback) => fs.fchmod(fd, FILE_MODE, callback)).catch(ignoreUnsupported);
  return fd;
}

function open(path: string, flags: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, FILE_MODE, (error, fd) => (error ? reject(error) : resolve(fd)));
  });
}

function writeOnce(fd: number, data: Uint8Array, offset: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.write(fd, data, offset, data.length - offset, null, (error, written) =>
      error ? reject(error) : resolve(written),
    );
  });
}

function promisify(run: (callback: (error: NodeJS.ErrnoException | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())));
}

function ignoreUnsupported(error: NodeJS.ErrnoException): void {
  if (!["EINVAL", "EPERM", "EISDIR", "ENOTSUP"].includes(error.code ?? "")) throw error;
}
