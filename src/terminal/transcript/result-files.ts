/** Images and other files that tools return: shown where the terminal can, else named in one line each. */
import type { BinaryReference } from "../../protocol/event.ts";
import { imageLine, imageProtocol } from "../screen/image.ts";
import { safeLine } from "../screen/safe.ts";

const MAX_SHOWN_BYTES = 4 * 1024 * 1024;

/** `image/png, 34 kB: /home/me/.troupe/session-state/…/records/…`. */
export function fileLine(file: BinaryReference, folder: string | undefined): string {
  const { mimeType, byteLength, description, assetId } = file;
  const about = description === undefined ? "" : `${safeLine(description).slice(0, 80)} · `;
  const extension = (mimeType.split("/")[1] ?? "bin").replace(/[^A-Za-z0-9]/g, "").slice(0, 16);
  const path = folder === undefined ? "" : `: ${folder}/records/${assetId.replace(/^sha256:/, "")}.${extension}`;
  return `${about}${safeLine(mimeType)}, ${sizeText(byteLength)}${safeLine(path)}`;
}

function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Whether the terminal probably shows this file as an image. */
export function isShowable(
  { type, mimeType, byteLength }: BinaryReference,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const protocol = imageProtocol(environment);
  if (!protocol || type !== "image" || byteLength > MAX_SHOWN_BYTES) return false;
  return protocol === "iterm" || mimeType === "image/png";
}

export interface ImagePorts {
  readonly options: { readonly environment: Readonly<Record<string, string | undefined>> };
  call<T>(method: string, params: Readonly<Record<string, unknown>>): Promise<T>;
}

/** Returns the image as one line to commit, or undefined if it cannot be read or shown. */
export async function resultImage(app: ImagePorts, { assetId }: BinaryReference): Promise<string | undefined> {
  const protocol = imageProtocol(app.options.environment);
  if (!protocol) return undefined;
  const read = await app.call<{ data: string }>("session.assets.read", { assetId }).catch(() => undefined);
  return read && imageLine(Buffer.from(read.data, "base64"), protocol);
}
