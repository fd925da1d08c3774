const MAX_CHARACTERS = 64;

/** Returns a task id: the name in lower-case letters, digits and dashes, numbered if it is already in use. */
export function nameTask(name: string, isTaken: (id: string) => boolean): string {
  const plain = normaliseName(name, MAX_CHARACTERS);
  if (!isTaken(plain)) return plain;
  for (let number = 2; ; number++) {
    const suffix = `-${number}`;
    const id = `${normaliseName(name, MAX_CHARACTERS - suffix.length)}${suffix}`;
    if (!isTaken(id)) return id;
  }
}

function normaliseName(name: string, maxCharacters: number): string {
  const words = name
    .slice(0, 1000)
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}+/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, maxCharacters)
    .replace(/-$/, "");
  return words === "" || RESERVED.has(words) ? "agent" : words;
}

/** Words with another meaning where an id is expected, or names of members that every object has. */
const RESERVED = new Set(["main", "all", "siblings", "children", "self", "constructor", "prototype"]);
