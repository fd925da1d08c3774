/** Where the sign-in to one remote server is kept: a file of the owner alone, or memory. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import * as z from "zod";
import { parseJson } from "../../../lib/json.ts";
import { type Disk, replaceFile } from "../../../lib/node/disk.ts";
import { withFileLock } from "../../../lib/node/file-lock.ts";
import { readSmallFile } from "../../../lib/node/small-file.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { McpServerConfig } from "../server.ts";

const text = z.string().min(1).max(65_536);

const SignIn = z.object({
  serverUrl: text,
  /** As registered, or given by the configuration; `issuer` says to whom it belongs. */
  client: z.looseObject({ client_id: text, issuer: text.optional() }).exactOptional(),
  /** Given by a person for a client that has one. */
  clientSecret: text.exactOptional(),
  tokens: z
    .looseObject({
      access_token: text,
      token_type: text,
      refresh_token: text.optional(),
      scope: z.string().max(65_536).optional(),
      issuer: text.optional(),
    })
    .exactOptional(),
  /** What the next sign-in should ask for, because a call needed it. */
  wantedScope: text.exactOptional(),
  /** The scope of the last sign-in: where it is refused again, another sign-in does not help. */
  askedScope: text.exactOptional(),
  /** How the server refused a session last; the next sign-in goes by it. */
  refusal: z.object({ resourceMetadataUrl: text.exactOptional(), scope: text.exactOptional() }).exactOptional(),
});
export type SignIn = z.infer<typeof SignIn>;

export interface SignInStore {
  /** What is kept now; another process may have changed it since the last look. */
  read(): SignIn | undefined;
  change(edit: (kept: Partial<SignIn>) => Omit<SignIn, "serverUrl">): Promise<void>;
  /** False when there was nothing. */
  remove(): Promise<boolean>;
}

const MAX_BYTES = 512 * 1024;

/** Kept under name and address: the same name with another address is another server, and gets nothing of this one. */
export function fileSignIn(options: { disk: Disk; stateRoot: string; config: McpServerConfig }): SignInStore {
  const { disk, stateRoot, config } = options;
  const serverUrl = remoteUrl(config);
  const id = createHash("sha256")
    .update(JSON.stringify([config.name, serverUrl]))
    .digest("hex")
    .slice(0, 32);
  const file = join(stateRoot, "mcp-oauth", `${id}.json`);
  const read = (): SignIn | undefined => {
    const content = readSmallFile(file, { maxBytes: MAX_BYTES });
    const json = content.kind === "text" ? parseJson(content.text) : undefined;
    const parsed = json?.ok ? SignIn.safeParse(json.value) : undefined;
    return parsed?.success && parsed.data.serverUrl === serverUrl ? parsed.data : undefined;
  };
  return {
    read,
    change: (edit) =>
      withFileLock({ path: file, disk, Failure: TroupeError }, async () => {
        const next = { serverUrl, ...edit(read() ?? {}) };
        await replaceFile(disk, file, `${JSON.stringify({ ...next, serverUrl }, undefined, 2)}\n`);
      }),
    async remove() {
      const isThere = readSmallFile(file, { maxBytes: MAX_BYTES }).kind !== "missing";
      if (isThere) await disk.unlink(file);
      return isThere;
    },
  };
}

export function memorySignIn(config: McpServerConfig): SignInStore {
  const serverUrl = remoteUrl(config);
  let kept: SignIn | undefined;
  return {
    read: () => kept,
    async change(edit) {
      kept = { ...edit(kept ?? {}), serverUrl };
    },
    async remove() {
      const was = kept !== undefined;
      kept = undefined;
      return was;
    },
  };
}

export function remoteUrl({ name, transport }: McpServerConfig): string {
  if (transport.type === "stdio") throw new Error(`${name} is not a remote server`);
  return transport.url;
}
