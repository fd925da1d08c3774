/** Decides which actions a statement may take. Runs in the database process: see `program.ts`. */

export interface AccessRules {
  /** Returns why an action on the read-only store is refused, or `undefined`. */
  refusalWhenReading(code: number, first: string | null): string | undefined;
  /** Returns why an action on the session database is refused, or `undefined`. */
  refusalOf(code: number, first: string | null, second: string | null): string | undefined;
}

/** Self-contained: sent to the database process as source text. */
export function accessRules(): AccessRules {
  const action = { pragma: 19, read: 20, select: 21, function: 31, recursive: 33 };
  const attaching = [24, 25];
  const creatingVirtualTable = 29;
  const reading: readonly number[] = [action.read, action.select, action.function, action.recursive];
  const harmlessPragmas = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
    "quick_check",
    "integrity_check",
    "data_version",
  ];
  const forbiddenFunctions = ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"];
  return { refusalWhenReading, refusalOf };

  function refusalWhenReading(code: number, first: string | null): string | undefined {
    // The full-text index reads this pragma itself to detect writes.
    const isAboutVersion = code === action.pragma && first === "data_version";
    return reading.includes(code) || isAboutVersion ? undefined : "This database can only be read, with SELECT";
  }

  function refusalOf(code: number, first: string | null, second: string | null): string | undefined {
    if (attaching.includes(code)) return "Other database files cannot be reached (ATTACH, DETACH, VACUUM)";
    if (code === action.pragma && !harmlessPragmas.includes(String(first).toLowerCase()))
      return `PRAGMA ${first} is not available here`;
    if (code === action.function && forbiddenFunctions.includes(String(second).toLowerCase()))
      return `The function ${second} is not available here`;
    if (code === creatingVirtualTable && String(second).toLowerCase() !== "fts5")
      return `Virtual tables of ${second} are not available here`;
    return undefined;
  }
}
