import type { FileProvider } from "../../src/protocol/session-fs.ts";

export interface MemoryProvider extends FileProvider {
  /** What is kept, by session and path. */
  readonly files: Map<string, string>;
  /** Every request, as `method path`. */
  readonly requests: string[];
  /** Called before each request; what it throws is the answer. */
  before: (request: string) => void | Promise<void>;
}

/** A client that keeps sessions, without a client. Folders must be made before files are put into them, as on a disk. */
export function memoryProvider(): MemoryProvider {
  const files = new Map<string, string>();
  const folders = new Set<string>();
  const changed = new Map<string, number>();
  let clock = 0;
  const provider: MemoryProvider = {
    ...{ folder: "/state", conventions: "posix", files, requests: [], before: () => undefined },
    read: (id, path) => asked("read", id, path, (key) => files.get(key)),
    write: (id, path, content) => asked("write", id, path, (key) => put(key, content)),
    append: (id, path, content) => asked("append", id, path, (key) => put(key, (files.get(key) ?? "") + content)),
    stat: (id, path) =>
      asked("stat", id, path, (key) => {
        const content = files.get(key);
        if (content === undefined) return undefined;
        return {
          isFile: true,
          size: Buffer.byteLength(content),
          modified: new Date(changed.get(key) ?? 0).toISOString(),
        };
      }),
    makeFolder: (id, path) => asked("makeFolder", id, path, (key) => void folders.add(key)),
    list: (id, path) =>
      asked("list", id, path, (key) => {
        const below = [...files.keys()]
          .filter((one) => one.startsWith(`${key}/`))
          .map((one) => one.slice(key.length + 1));
        const names = new Set(below.map((one) => one.split("/")[0] ?? ""));
        return [...names].map((name) => ({ name, isFolder: !files.has(`${key}/${name}`) }));
      }),
    remove: (id, path) =>
      asked("remove", id, path, (key) => {
        for (const one of [...files.keys()]) if (one === key || one.startsWith(`${key}/`)) files.delete(one);
      }),
    rename: (id, from, to) =>
      asked("rename", id, from, (key) => {
        const content = files.get(key);
        if (content === undefined) throw Object.assign(new Error(`no such file: ${from}`), { code: "ENOENT" });
        files.delete(key);
        put(`${id}:${to}`, content);
      }),
  };

  function put(key: string, content: string): void {
    const folder = key.slice(0, key.lastIndexOf("/"));
    if (!folders.has(folder)) throw Object.assign(new Error(`no such folder: ${folder}`), { code: "ENOENT" });
    files.set(key, content);
    changed.set(key, ++clock);
  }

  async function asked<T>(method: string, sessionId: string, path: string, work: (key: string) => T): Promise<T> {
    const request = `${method} ${path}`;
    provider.requests.push(request);
    await provider.before(request);
    return work(`${sessionId}:${path}`);
  }

  return provider;
}
