/** Characters that some file systems ignore when they compare names. */
const IGNORED = /[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

/** The form in which names are compared for a refusal: no spelling of a name that a file system could accept gets past. */
export function fold(name: string): string {
  // Most words are plain ASCII, and this runs for every word of every command.
  if (/^[\u0021-\u007e]*$/.test(name)) return name.toLowerCase();
  return name.normalize("NFC").replace(IGNORED, "").toLowerCase().normalize("NFC");
}

/** The last part of a path, without a trailing separator. */
export function baseName(path: string): string {
  const trimmed = path.replace(/\/+$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}
