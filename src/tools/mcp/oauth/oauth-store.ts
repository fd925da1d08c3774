/** Stores the sign-in to one remote server, in a file readable by the owner only. */
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
  /** As registered, or from the configuration; `issuer` is the server it belongs to. */
  client: z.looseObject({ client_id: text, issuer: text.optional() }).exactOptional(),
  /** Entered by the user, for a client with a secret. */
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
  /** The scope to request at the next sign-in, because a call needed it. */
  wantedScope: text.exactOptional(),
  /** The scope of the last sign-in. If it is refused again, another sign-in does not help. */
  askedScope: text.exactOptional(),
  /** The last refusal that a session received; used by the next sign-in. */
  refusal: z.object({ resourceMetadataUrl: text.exactOptional(), scope: text.exactOptional() }).exactOptional(),
});
export type SignIn = z.infer<typeof SignIn>;

export interface SignInStore {
  /** Returns the current state; another process may have changed it since the last call. */
  read(): SignIn | undefined;
  change(edit: (kept: Partial<SignIn>) => Omit<SignIn, "serverUrl">): Promise<void>;
  /** Returns false when nothing was stored. */
  remove(): Promise<boolean>;
}

const MAX_BYTES = 512 * 1024;

/** Stored under name and address: the same name with another address is another server and cannot use these tokens. */
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

export function remoteUrl({ name, transport }: McpServerConfig): string {
  if (transport.type === "stdio") throw new Error(`${name} is not a remote server`);
  return transport.url;
}
