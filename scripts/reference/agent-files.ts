import { builtinAgents } from "../../src/agents/builtin/parsed.derived.ts";
import { fieldTexts } from "../../src/agents/field-texts.ts";
import { type FieldName, fieldShapes } from "../../src/agents/fields.ts";
import { block, code, type Page, page, sentence, table } from "./markdown.ts";

const EXAMPLE = `---
description: Writes tests for the HTTP API. Use after an endpoint was added or changed.
tools: [view, grep, glob, create, edit, bash]
limits: { turns: 40, seconds: 900 }
---

You write tests for one endpoint. Read the handler and the tests beside it first.
`;

export function agentFiles(): Page {
  const names = Object.keys(fieldTexts) as (keyof typeof fieldTexts)[];
  return page({
    name: "agent-files",
    title: "Agent files",
    from: ["src/agents/fields.ts", "src/agents/field-texts.ts", "src/agents/builtin"],
    parts: [
      "An agent is a Markdown file: YAML fields between `---` lines, then the prompt. How to write one: " +
        "[custom agents](../how-to/agents.md).",
      block("markdown agent", EXAMPLE),
      "## Fields",
      "Names can be written `like-this` or `likeThis`. A file has at most 64 KiB.",
      table(
        ["field", "value", "default", "meaning"],
        names.map((name) => [
          code(kebab(name)),
          sentence(fieldShapes[name as FieldName].expects).slice(0, -1),
          fieldTexts[name].default,
          fieldTexts[name].text,
        ]),
      ),
      "## Built-in agents",
      table(
        ["agent", "description"],
        builtinAgents.map(({ name, description }) => [code(name), description]),
      ),
    ],
  });
}

const kebab = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
