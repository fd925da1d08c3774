import { eventDefinitions } from "../../src/protocol/event.ts";
import { eventTexts } from "./event-texts.ts";
import { code, type Page, page, table } from "./markdown.ts";
import { jsonSchemaOf, membersOf } from "./schema-types.ts";

type Definition = (typeof eventDefinitions)[number];

export function events(): Page {
  const groups = [...new Set(eventDefinitions.map(groupOf))].sort();
  return page({
    name: "events",
    title: "Events",
    from: ["src/protocol/event.ts", "scripts/reference/event-texts.ts"],
    parts: [
      "Everything that happens in a session is an event. All have `id`, `timestamp`, `parentId` (the stored event before), " +
        "`type` and `data`; events of other agents than the main one also have `agentId`. Clients ignore types and members that they do not know.",
      table(
        ["kind", "meaning"],
        [
          ["buffered", "written to the log at once, synced within 50 ms; listeners get it after the write"],
          ["barrier", "synced to disk before any listener gets it"],
          ["ephemeral", "sent to listeners only, never stored; marked `ephemeral: true`"],
        ],
      ),
      ...groups.flatMap((group) => [
        `## ${group}`,
        rowsOf(eventDefinitions.filter((event) => groupOf(event) === group)),
      ]),
    ],
  });
}

const groupOf = ({ type }: Definition): string => type.split(".")[0] ?? type;

function rowsOf(definitions: readonly Definition[]): string {
  return table(
    ["event", "kind", "meaning", "data"],
    definitions.map((event) => [
      code(event.type),
      event.ephemeral ? "ephemeral" : event.barrier ? "barrier" : "buffered",
      eventTexts[event.type],
      membersOf(jsonSchemaOf(event.data.unwrap()))
        .map(({ name, isOptional }) => code(isOptional ? `${name}?` : name))
        .join(" "),
    ]),
  );
}
