/**
 * JSON schemas of `fixed` inputs, by id. Empty in the source: the build of the command line fills it in, so that no
 * schema is derived at start.
 */
export const derivedSchemas: ReadonlyMap<string, object> = new Map();
