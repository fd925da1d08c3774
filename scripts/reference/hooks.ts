import { entrySchemas } from "../../src/hooks/entry.ts";
import { pointTexts } from "../../src/hooks/point-texts.ts";
import {
  canRefuse,
  hookPoints,
  isAuthorising,
  outputSchemas,
  pascalName,
  subjectFields,
} from "../../src/hooks/points.ts";
import { code, type Page, page, table } from "./markdown.ts";
import { jsonSchemaOf, membersOf } from "./schema-types.ts";

export function hooks(): Page {
  return page({
    name: "hooks",
    title: "Hooks",
    from: ["src/hooks/points.ts", "src/hooks/point-texts.ts", "src/hooks/entry.ts"],
    parts: [
      "How to write hooks, where their files are and what a failure does: [hooks](../how-to/hooks.md). Every input also has " +
        "`sessionId`, `cwd` and `timestamp`.",
      "## Events",
      table(
        ["event", "also written", "when", "`matcher` compares", "if the hook fails"],
        hookPoints.map((point) => [
          code(point),
          code(pascalName(point)),
          pointTexts[point].when,
          subjectFields[point] === undefined ? "" : code(subjectFields[point]),
          isAuthorising(point) ? "denied" : canRefuse(point) ? "continues, or blocks with `onFailure`" : "continues",
        ]),
      ),
      "## Entries",
      table(
        ["type", "fields"],
        Object.entries(entrySchemas).map(([type, schema]) => [
          code(type),
          membersOf(jsonSchemaOf(schema.unwrap()))
            .filter(({ name }) => name !== "type")
            .map(({ name, type: value }) => code(`${name}: ${value}`))
            .join(", "),
        ]),
      ),
      ...hookPoints.flatMap((point) => [`## ${point}`, inputOf(point), outputOf(point)]),
    ],
  });
}

function inputOf(point: (typeof hookPoints)[number]): string {
  return table(
    ["input", "meaning"],
    Object.entries(pointTexts[point].input).map(([name, text]) => [code(name), text]),
  );
}

function outputOf(point: (typeof hookPoints)[number]): string {
  const members = membersOf(jsonSchemaOf(outputSchemas[point].unwrap()));
  if (members.length === 0) return "The answer is ignored.";
  return table(
    ["answer", "type"],
    members.map(({ name, type }) => [code(name), code(type)]),
  );
}
