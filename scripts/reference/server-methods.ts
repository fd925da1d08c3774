import { methods } from "../../src/server/methods/list.ts";
import { code, type Page, page, table } from "./markdown.ts";
import { jsonSchemaOf, membersOf } from "./schema-types.ts";

export function serverMethods(): Page {
  const names = Object.keys(methods).sort();
  const groups = [...new Set(names.map(groupOf))];
  return page({
    name: "server-methods",
    title: "Server methods",
    from: ["src/server/methods"],
    parts: [
      "All JSON-RPC methods of `troupe --headless`. A `?` marks an optional parameter. The contract behind them: " +
        "[client programs](server.md).",
      ...groups.flatMap((group) => [
        `## ${group}`,
        table(
          ["method", "parameters"],
          names.filter((name) => groupOf(name) === group).map((name) => [code(name), parametersOf(name)]),
        ),
      ]),
    ],
  });
}

/** `session.queue.clear` belongs to `session.queue`, `session.send` to `session`. */
function groupOf(name: string): string {
  const parts = name.split(".");
  return parts.length === 1 ? "connection" : parts.slice(0, Math.min(2, parts.length - 1)).join(".");
}

function parametersOf(name: string): string {
  const schema = methods[name]?.params();
  const members = schema === undefined ? [] : membersOf(jsonSchemaOf(schema));
  return members.map((member) => code(member.isOptional ? `${member.name}?` : member.name)).join(" ");
}
