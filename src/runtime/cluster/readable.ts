/** Leaves out tables that the database role may not read: the role of a tenant sees only rows of its own. */

const NO_RIGHT = "42501";

/** Resolves with undefined if the role has no right to the table. */
export async function readable<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === NO_RIGHT) return undefined;
    throw error;
  });
}
