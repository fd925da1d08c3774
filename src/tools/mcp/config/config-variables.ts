/** `$NAME`, `${NAME}` and `${NAME:-otherwise}` in the entries of a configuration; `$$` is a dollar sign. */

export type Variables = (name: string) => { readonly kind: "value"; readonly value: string } | Missing;

/** "withheld": it may be set, but whoever wrote the entry must not have it. */
interface Missing {
  readonly kind: "unset" | "withheld";
}

export type Expanded =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing"; readonly name: string; readonly reason: Missing["kind"] };

const REFERENCE = /\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})/g;

/** What a value stands for is put in as it is: it is not looked through for further references. */
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

/** The names of all variables that the text refers to. */
export function namedIn(text: string): string[] {
  return Array.from(text.matchAll(REFERENCE), ([, , bare, braced]) => bare ?? braced ?? "").filter(
    (name) => name !== "",
  );
}

/** True for text that only names variables, and so says nothing secret itself. */
export function isReference(text: string): boolean {
  return /^(?:(?:Bearer|Basic|token) )?\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})$/i.test(text);
}
