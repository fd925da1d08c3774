import { TextDecoder } from "node:util";

/** The media type of a body, and its text. */
export type Content =
  | { readonly kind: "html" | "text"; readonly mediaType: string; readonly text: string }
  | { readonly kind: "binary"; readonly mediaType: string };

export function decodeContent(bytes: Buffer, contentType: string): Content {
  const declared = mediaTypeOf(contentType);
  const kind = kindOf(declared, bytes);
  const mediaType = declared === "" ? `no content type, taken as ${kind}` : declared;
  if (kind === "binary") return { kind, mediaType };
  return { kind, mediaType, text: decode(bytes, contentType, kind) };
}

function mediaTypeOf(contentType: string): string {
  const [mediaType = ""] = contentType.split(";");
  return mediaType
    .trim()
    .toLowerCase()
    .replace(/[^\x21-\x7e]/g, "")
    .slice(0, 100);
}

const TEXT_TYPES =
  /^(text\/.+|.+\+(json|xml|yaml)|application\/(json|jsonl|x-ndjson|xml|javascript|ecmascript|x-javascript|typescript|yaml|x-yaml|toml|sql|graphql|x-sh|x-www-form-urlencoded|rtf))$/;

function kindOf(mediaType: string, bytes: Buffer): Content["kind"] {
  if (mediaType === "text/html" || mediaType === "application/xhtml+xml") return "html";
  if (mediaType !== "" && !TEXT_TYPES.test(mediaType)) return "binary";
  const isWide = bomOf(bytes)?.startsWith("utf-16") ?? false;
  if (!isWide && bytes.subarray(0, SNIFFED_BYTES).includes(0)) return "binary";
  if (mediaType !== "") return "text";
  return /^\s*(<!doctype html|<html|<head|<body)/i.test(bytes.toString("latin1", 0, SNIFFED_BYTES)) ? "html" : "text";
}

const SNIFFED_BYTES = 4096;

/** Charset precedence: byte order mark, header, `<meta>` in the page, UTF-8. */
function decode(bytes: Buffer, contentType: string, kind: "html" | "text"): string {
  const header = /charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(contentType)?.[1];
  const meta = kind === "html" ? charsetInPage(bytes) : undefined;
  return decoderFor(bomOf(bytes) ?? header ?? meta ?? "utf-8").decode(bytes);
}

function bomOf(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : undefined;
}

function charsetInPage(bytes: Buffer): string | undefined {
  const head = bytes.toString("latin1", 0, SNIFFED_BYTES);
  const name = /<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?([\w:.-]{1,40})/i.exec(head)?.[1];
  // A page whose `<meta>` is readable as single bytes is not UTF-16.
  return name !== undefined && /^utf-?16/i.test(name) ? "utf-8" : name;
}

function decoderFor(label: string): TextDecoder {
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}
