/**
 * `x-mcp-header` in the schema of a tool (2026-07-28, Streamable HTTP): the value of a property is repeated in a
 * request header. A client must drop tools whose declarations break the rules. The library checks them only in its own
 * listing, which drops a whole page for one malformed tool.
 */
import { isObject } from "../../lib/json.ts";

const KEY = "x-mcp-header";
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const TYPES = ["string", "integer", "boolean"];
/** Keywords that hold values, not schemas. */
const VALUES = ["default", "const", "enum", "examples"];

/** Returns the first broken rule, or undefined. The depth of the schema must have been checked. */
export function headerProblem(schema: object): string | undefined {
  const seen = new Set<string>();

  const visit = (node: unknown, isProperty: boolean, isReachable: boolean): string | undefined => {
    if (Array.isArray(node)) return first(node, (item) => visit(item, false, false));
    if (!isObject(node)) return undefined;
    const problem = Object.hasOwn(node, KEY) ? declared(node, isProperty && isReachable) : undefined;
    if (problem !== undefined) return problem;
    return first(Object.entries(node), ([key, child]) => {
      if (VALUES.includes(key)) return undefined;
      if (key !== "properties" || !isObject(child)) return visit(child, false, false);
      return first(Object.values(child), (property) => visit(property, true, isReachable));
    });
  };

  const declared = (node: Readonly<Record<string, unknown>>, isAllowed: boolean): string | undefined => {
    const name = node[KEY];
    if (!isAllowed) return `${KEY} is allowed only on properties of the arguments`;
    if (typeof name !== "string" || name === "") return `${KEY} is not a name`;
    if (!TOKEN.test(name)) return `${KEY} is not a valid header name`;
    if (typeof node.type !== "string" || !TYPES.includes(node.type))
      return `${KEY} is set on a property that is not a string, integer or boolean`;
    if (seen.has(name.toLowerCase())) return `${KEY} names the same header twice`;
    seen.add(name.toLowerCase());
    return undefined;
  };

  return visit(schema, false, true);
}

function first<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
