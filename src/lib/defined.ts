/** Returns the members that are not undefined, for interfaces that tell an absent member from an undefined one. */
export function defined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const made: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const key in value) {
    if (value[key] !== undefined) made[key] = value[key] as Exclude<T[typeof key], undefined>;
  }
  return made;
}
