/** Expands `$NAME`, `${NAME}` and `${NAME:-default}` in configuration entries; `$$` is a dollar sign. */

export type Variables = (name: string) => { readonly kind: "value"; readonly value: string } | Missing;

/** "withheld": it may be set, but the author of the entry must not read it. */
interface Missing {
  readonly kind: "unset" | "withheld";
}

export type Expanded =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing"; readonly name: string; readonly reason: Missing["kind"] };

const REFERENCE = /\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})/g;

/** Inserts values literally: references inside a value are not expanded. */
export function expand(text: string, variables: Variables): Expanded {
  let missing: Extract<Expanded, { kind: "missing" }> | undefined;
  const expanded = text.replace(REFERENCE, (_, dollar?: string, bare?: string, braced?: string, otherwise?: string) => {
    if (dollar !== undefined) return "$";
    const name = bare ?? braced ?? "";
    const found = variables(name);
    if (found.kind === "value" && (found.value !== "" || otherwise === undefined)) return found.value;
    if (otherwise !== undefined) return otherwise;
    missing ??= { kind: "missing", name, reason: found.kind === "value" ? "unset" : found.kind };
    return "";
  });
  return missing ?? { kind: "text", text: expanded };
}

/** Returns the names of all variables that the text references. */
export function namedIn(text: string): string[] {
  return Array.from(text.matchAll(REFERENCE), ([, , bare, braced]) => bare ?? braced ?? "").filter(
    (name) => name !== "",
  );
}

/** Returns true for text that only names a variable, and so contains no secret itself. */
export function isReference(text: string): boolean {
  return /^(?:(?:Bearer|Basic|token) )?\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})$/i.test(text);
}
