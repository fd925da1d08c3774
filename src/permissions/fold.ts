/** Characters that HFS+ and ext4 with case folding ignore when they compare names. */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;

/** The form in which names are compared for a refusal: no spelling of a name that a file system could accept gets past. */
export function fold(name: string): string {
  // Most words are plain ASCII, and this runs for every word of every command.
  if (/^[\u0021-\u007e]*$/.test(name)) return name.toLowerCase();
  // Upper case first: the long s of `.v\u017fcode` is an s to file systems, but has no lower case of its own.
  return name.normalize("NFC").replace(IGNORED, "").toUpperCase().toLowerCase().normalize("NFC");
}

/** The last part of a path, without a trailing separator. */
export function baseName(path: string): string {
  const trimmed = path.replace(/\/+$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}
