/**
 * The client that stores the sessions of this server: all their files are read and written through it. While it is
 * disconnected no session can be opened. The same or another client may replace it.
 */

import { statSync } from "node:fs";
import { parse } from "node:path";
import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { FileProvider, SqliteProvider, SqliteRows } from "../../protocol/session-fs.ts";
import type { ClientConnection } from "../connection.ts";

export interface ClientStorage {
  readonly initialCwd: string;
  readonly sessionStatePath: string;
  readonly conventions: "posix" | "windows";
  readonly hasSqlite: boolean;
}

/** Timeout for the client's answer. */
const ANSWER_MS = 30_000;
const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

export class StorageClient {
  #holder: ClientConnection | undefined;
  #storage: ClientStorage | undefined;

  get isRegistered(): boolean {
    return this.#holder !== undefined;
  }

  hold(connection: ClientConnection, storage: ClientStorage): void {
    if (this.#holder && !this.#holder.isClosed && this.#holder !== connection) {
      throw new TroupeError("usage", "Another client already stores the sessions of this server.");
    }
    this.#holder = connection;
    this.#storage = storage;
  }

  /** Returns true if it was the storage client. */
  forget(connection: ClientConnection): boolean {
    if (this.#holder !== connection) return false;
    this.#holder = undefined;
    return true;
  }

  /** Default working directory. Undefined if it is not a folder of this machine, or a file system root. */
  get initialCwd(): string | undefined {
    const path = this.#storage?.initialCwd;
    if (path === undefined || parse(path).root === path) return undefined;
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ? path : undefined;
  }

  provider({ sessionStatePath, conventions, hasSqlite }: ClientStorage): FileProvider {
    const schemas = answers();
    const ask = async <S extends z.ZodType>(name: string, schema: S, params: object, signal?: AbortSignal) =>
      this.#ask(name, schema, params, signal);
    return {
      folder: sessionStatePath,
      conventions,
      async read(sessionId, path) {
        const { content, error } = await ask("readFile", schemas.content, { sessionId, path });
        if (error?.code === "ENOENT") return undefined;
        failOn(error, path);
        return content;
      },
      async write(sessionId, path, content) {
        failOn(await ask("writeFile", schemas.done, { sessionId, path, content, mode: PRIVATE_FILE }), path);
      },
      async append(sessionId, path, content) {
        failOn(await ask("appendFile", schemas.done, { sessionId, path, content, mode: PRIVATE_FILE }), path);
      },
      async stat(sessionId, path) {
        const { error, isFile, size, mtime } = await ask("stat", schemas.stat, { sessionId, path });
        if (error?.code === "ENOENT") return undefined;
        failOn(error, path);
        return { isFile, size, modified: mtime };
      },
      async makeFolder(sessionId, path) {
        const params = { sessionId, path, recursive: true, mode: PRIVATE_FOLDER };
        failOn(await ask("mkdir", schemas.done, params), path);
      },
      async list(sessionId, path) {
        const { entries, error } = await ask("readdirWithTypes", schemas.entries, { sessionId, path });
        if (error?.code === "ENOENT") return [];
        failOn(error, path);
        return entries
          .filter(({ name }) => isPlainName(name))
          .map(({ name, type }) => ({ name, isFolder: type === "directory" }));
      },
      async remove(sessionId, path) {
        const error = await ask("rm", schemas.done, { sessionId, path, recursive: true, force: true });
        if (error?.code !== "ENOENT") failOn(error, path);
      },
      async rename(sessionId, src, dest) {
        failOn(await ask("rename", schemas.done, { sessionId, src, dest }), src);
      },
      ...(hasSqlite && { sqlite: sqliteOf(schemas, ask) }),
    };
  }

  async #ask<S extends z.ZodType>(
    name: string,
    schema: S,
    params: object,
    signal: AbortSignal | undefined,
  ): Promise<z.infer<S>> {
    if (!this.#holder) {
      throw new TroupeError("storage", "The client that stores the sessions of this server has disconnected.", {
        hint: "Connect it again and call sessionFs.setProvider.",
      });
    }
    const answer = await this.#holder.ask(`sessionFs.${name}`, params, {
      timeoutMs: ANSWER_MS,
      ...defined({ signal }),
    });
    const parsed = schema.safeParse(answer);
    if (parsed.success) return parsed.data;
    throw new Error(`the client's answer to sessionFs.${name} cannot be read: ${z.prettifyError(parsed.error)}`);
  }
}

type Ask = <S extends z.ZodType>(name: string, schema: S, params: object, signal?: AbortSignal) => Promise<z.infer<S>>;

function answers() {
  const error = z.object({ code: z.string(), message: z.string().optional() });
  const failing = error.nullish();
  const rows = z.object({
    columns: z.array(z.string()),
    rows: z.array(z.record(z.string(), z.unknown())),
    rowsAffected: z.number(),
    lastInsertRowid: z.number().optional(),
  });
  return {
    /** Empty, or the error. */
    done: failing,
    content: z.object({ content: z.string(), error: failing }),
    stat: z.object({ isFile: z.boolean(), size: z.number(), mtime: z.string(), error: failing }),
    entries: z.object({ entries: z.array(z.object({ name: z.string(), type: z.string() })), error: failing }),
    rows: rows.extend({ error: z.object({ message: z.string().optional() }).nullish() }),
    transaction: z.object({
      results: z.array(rows),
      error: z.object({ errorClass: z.string(), message: z.string() }).nullish(),
    }),
    exists: z.object({ exists: z.boolean() }),
  };
}

function sqliteOf(schemas: ReturnType<typeof answers>, ask: Ask): SqliteProvider {
  return {
    async query(sessionId, statement, signal): Promise<SqliteRows> {
      const { error, ...rows } = await ask("sqliteQuery", schemas.rows, { sessionId, ...statement }, signal);
      if (error) throw new Error(error.message ?? "the statement failed");
      return rows;
    },
    async transaction(sessionId, statements, signal) {
      const { error, results } = await ask("sqliteTransaction", schemas.transaction, { sessionId, statements }, signal);
      if (!error) return results;
      const outcome =
        error.errorClass === "postCommitAmbiguous"
          ? "It is unknown whether the statements took effect. Check before you retry"
          : "None of the statements took effect";
      throw new Error(`${error.message}. ${outcome}`);
    },
    exists: async (sessionId) => (await ask("sqliteExists", schemas.exists, { sessionId })).exists,
  };
}

function failOn(
  error: { readonly code: string; readonly message?: string | undefined } | null | undefined,
  path: string,
): void {
  if (error) throw new Error(`the client that stores the session reported for ${path}: ${error.message ?? error.code}`);
}

/** Names from a client become parts of paths here. */
const isPlainName = (name: string): boolean => name !== "" && name !== "." && name !== ".." && !/[\\/\0]/.test(name);
