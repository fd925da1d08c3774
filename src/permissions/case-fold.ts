/** Characters that HFS+ and ext4 with case folding ignore when they compare names. */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * Normalises a name for comparison in denials, so that no alternative spelling that a file system accepts gets past.
 */
export function caseFold(name: string): string {
  // Fast path: most words are plain ASCII, and this runs for every word of every command.
  if (/^[\u0021-\u007e]*$/.test(name)) return name.toLowerCase();
  // Upper case first: file systems treat the long s of `.v\u017fcode` as an s, but it has no lower case of its own.
  return name.normalize("NFC").replace(IGNORED, "").toUpperCase().toLowerCase().normalize("NFC");
}

/** Returns the last part of a path, without a trailing separator. */
export function baseName(path: string): string {
  const trimmed = path.replace(/\/+$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}
