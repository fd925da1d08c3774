import { defineCommand } from "./command.ts";
import { listed, shown } from "./lines.ts";

export const skills = defineCommand({
  name: "skills",
  summary: "Show the skills you can call by name",
  harmless: "always",
  needs: ["skills"],
  run(_, { skills: list }) {
    const lines = list().map(({ commandName, argumentHint, description }) => {
      const usage = `/${shown(commandName, 80)}${argumentHint ? ` ${shown(argumentHint, 60)}` : ""}`;
      return `${usage}: ${shown(description)}`;
    });
    return { kind: "completed", text: lines.length === 0 ? "There are no skills here." : listed(lines) };
  },
});
