import { SettingsSchema } from "../../src/catalog/settings/settings-schema.ts";
import { type SettingName, settingTexts } from "../../src/catalog/settings/settings-texts.ts";
import { variableGroups } from "../../src/cli/variables.ts";
import { providerList } from "../../src/model/providers/list.ts";
import { flagDefinitions, flagNames } from "../../src/protocol/flags.ts";
import { code, type Page, page, sentence, table } from "./markdown.ts";
import { jsonSchemaOf, typeOf } from "./schema-types.ts";

export function settings(): Page {
  const schema = jsonSchemaOf(SettingsSchema.unwrap());
  return page({
    name: "settings",
    title: "Settings",
    from: ["src/catalog/settings/settings-schema.ts", "src/catalog/settings/settings-texts.ts"],
    parts: [
      "Keys of `settings.json` in `TROUPE_HOME` (default `~/.troupe`). Files, order and what a project may set: " +
        "[settings](../how-to/settings.md).",
      table(
        ["key", "type", "meaning"],
        (Object.keys(settingTexts) as SettingName[]).map((name) => [
          code(name),
          code(typeAt(schema, name)),
          settingTexts[name],
        ]),
      ),
    ],
  });
}

/** Values that a `preprocess` step accepts have no type of their own in the schema. */
const TYPES: Readonly<Partial<Record<SettingName, string>>> = {
  enabledFeatureFlags: "object | string[]",
  "toolSearch.enabled": "boolean",
  "toolSearch.threshold": "number",
  logLevel: '"none" | "error" | "warning" | "info" | "debug"',
  memory: "object | boolean",
};

function typeAt(schema: ReturnType<typeof jsonSchemaOf>, name: SettingName): string {
  const known = TYPES[name];
  if (known !== undefined) return known;
  let found = schema;
  for (const part of name.split(".")) {
    const member = found.properties?.[part];
    if (typeof member !== "object") throw new Error(`The settings schema has no ${name}.`);
    found = member as typeof schema;
  }
  return typeOf(found);
}

export function environment(): Page {
  return page({
    name: "environment",
    title: "Environment variables",
    from: ["src/cli/variables.ts"],
    parts: [
      "Variables win over settings, flags win over variables. The older name in the second column is read when the first " +
        "is not set. Keys of model providers: [providers](providers.md). Switches of optional features: [feature flags](flags.md).",
      ...variableGroups.flatMap(({ title, variables }) => [
        `## ${title}`,
        table(
          ["variable", "also", "meaning"],
          variables.map(({ name, alias, text }) => [code(name), alias === undefined ? "" : code(alias), text]),
        ),
      ]),
    ],
  });
}

export function featureFlags(): Page {
  return page({
    name: "flags",
    title: "Feature flags",
    from: ["src/protocol/flags.ts"],
    parts: [
      table(
        ["flag", "default", "while it is on"],
        flagNames.map((name) => [code(name), flagDefinitions[name].default, sentence(flagDefinitions[name].gates)]),
      ),
      "## Precedence",
      [
        "Later sources win:",
        "",
        "1. the default",
        '2. your settings: `"enabledFeatureFlags": { "EXPLORE_SMALL_MODEL": true }`, or a list of names. Project settings cannot switch flags.',
        "3. `TROUPE_FEATURE_FLAGS`: names that are on, separated by commas",
        "4. a variable with the flag's name, with or without `TROUPE_`: `TROUPE_MULTI_TURN_AGENTS=off`, `COPILOT_SUBCONSCIOUS=on`",
        "5. the embedding program: `flags` of a session's `workspace`",
      ].join("\n"),
      "An unknown name is reported on stderr with the nearest known one. Settings of a single agent (`subagents.agents`) win over a flag.",
    ],
  });
}

export function providers(): Page {
  const codes = (names: readonly (string | undefined)[]): string =>
    names.flatMap((name) => (name === undefined ? [] : [code(name)])).join(", ");
  return page({
    name: "providers",
    title: "Providers",
    from: ["src/model/providers"],
    parts: [
      "With several keys set, the first provider in this table gives the default model. How to choose a model: " +
        "[models](../how-to/models.md).",
      table(
        ["provider", "name", "key", "other variables", "wire"],
        providerList.map(({ id, name, keyVariables, baseUrlVariable, azure, wire }) => [
          code(id),
          name,
          codes(keyVariables),
          codes([baseUrlVariable, ...(azure?.versionVariables ?? [])]),
          code(wire),
        ]),
      ),
    ],
  });
}
