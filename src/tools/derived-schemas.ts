/**
 * The JSON schemas of inputs that are `fixed`, by their id. Empty here: the build of the command line fills it, so that a
 * start derives none.
 */
export const derivedSchemas: ReadonlyMap<string, object> = new Map();
