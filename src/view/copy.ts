/** Copies plain data: objects, arrays and maps. Frozen objects never change and are shared. */
export function copied<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return value.map(copied) as T;
  if (value instanceof Map) return new Map([...value].map(([key, one]) => [key, copied(one)])) as T;
  const copy: Record<string, unknown> = {};
  for (const [key, one] of Object.entries(value)) copy[key] = copied(one);
  return copy as T;
}
