import { setVariables, variableGroups } from "../variables.ts";

const isOwn = ({ name }: { readonly name: string }): boolean => name.startsWith("TROUPE_");

/** Our own variables that troupe reads, with their meaning in Markdown. */
export const variables: Readonly<Record<string, string>> = Object.fromEntries(
  variableGroups
    .filter((group) => group !== setVariables)
    .flatMap((group) => group.variables.filter(isOwn).map(({ name, text }) => [name, text])),
);

export function environmentText(): string {
  const rows = Object.entries(variables).map(([name, help]) => `| ${name} | ${help} |`);
  return `| variable | meaning |\n| --- | --- |\n${rows.join("\n")}\n`;
}
