/**
 * Assets and large outputs of a session: rows in the database, and copies in the session's folder on this machine, where
 * tools read them by path. Paths in the log end with `records/<name>`; only this name counts on another machine.
 */

import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import { RECORDS } from "../access.ts";
import { nameAsset } from "../assets.ts";
import type { Database } from "./database.ts";

export class SessionFiles {
  readonly directory: string;
  readonly #database: Database;
  readonly #disk: Disk;
  readonly #sessionId: string;

  constructor(what: {
    readonly database: Database;
    readonly disk: Disk;
    readonly sessionId: string;
    readonly directory: string;
  }) {
    this.#database = what.database;
    this.#disk = what.disk;
    this.#sessionId = what.sessionId;
    this.directory = what.directory;
  }

  /** Stores the bytes once, whatever their name, and returns the path. */
  async addAsset(assetId: string, name: string, data: Uint8Array): Promise<string> {
    const { rows } = await this.#database.query<{ path: string }>(
      `with added as (
         insert into troupe.file(session_id, path, asset, data)
         select $1, $2, $3, $4
         where not exists (select 1 from troupe.file where session_id = $1 and asset = $3)
         on conflict do nothing returning path)
       select path from added union all select path from troupe.file where session_id = $1 and asset = $3`,
      [this.#sessionId, name, assetId, Buffer.from(data)],
    );
    return this.#copy(rows[0]?.path ?? name, data);
  }

  /** Stores a text under a new name, numbered in the order of the calls, and returns its path. */
  async addNumbered(name: string, text: string): Promise<string> {
    const data = Buffer.from(text);
    for (;;) {
      const { rows } = await this.#database.query<{ path: string }>(
        `insert into troupe.file(session_id, path, data)
         select $1, (1 + count(*)) || '-' || $2::text, $3 from troupe.file where session_id = $1 and asset is null
         on conflict do nothing returning path`,
        [this.#sessionId, name, data],
      );
      const path = rows[0]?.path;
      if (path !== undefined) return this.#copy(path, data);
    }
  }

  /** Returns `undefined` if there is no such asset, or if its bytes are not the ones that were stored. */
  async asset(assetId: string): Promise<Uint8Array | undefined> {
    const { rows } = await this.#database.query<{ data: Buffer }>(
      "select data from troupe.file where session_id = $1 and asset = $2",
      [this.#sessionId, assetId],
    );
    const data = rows[0]?.data;
    return data && nameAsset(data).assetId === assetId ? data : undefined;
  }

  async text(path: string): Promise<string | undefined> {
    const { rows } = await this.#database.query<{ data: Buffer }>(
      "select data from troupe.file where session_id = $1 and path = $2",
      [this.#sessionId, basename(path)],
    );
    return rows[0]?.data.toString("utf8");
  }

  /** Copies all files of the session that this machine lacks. Called when the session is opened. */
  async bring(): Promise<void> {
    const { rows } = await this.#database.query<{ path: string }>(
      "select path from troupe.file where session_id = $1",
      [this.#sessionId],
    );
    for (const { path } of rows) {
      if (existsSync(join(this.directory, RECORDS, path))) continue;
      const found = await this.#database.query<{ data: Buffer }>(
        "select data from troupe.file where session_id = $1 and path = $2",
        [this.#sessionId, path],
      );
      const data = found.rows[0]?.data;
      if (data) await this.#copy(path, data);
    }
  }

  async #copy(name: string, data: Uint8Array): Promise<string> {
    const folder = join(this.directory, RECORDS);
    const path = join(folder, basename(name));
    await this.#disk.mkdir(folder);
    if (!existsSync(path)) await replaceFile(this.#disk, path, data);
    return path;
  }
}
