import { defineCommand } from "./command.ts";
import { clipLine, joinLines } from "./lines.ts";

export const skills = defineCommand({
  name: "skills",
  summary: "Show the skills you can call by name",
  harmless: "always",
  needs: ["skills"],
  run(_, { skills: list }) {
    const lines = list().map(({ commandName, argumentHint, description }) => {
      const usage = `/${clipLine(commandName, 80)}${argumentHint ? ` ${clipLine(argumentHint, 60)}` : ""}`;
      return `${usage}: ${clipLine(description)}`;
    });
    return { kind: "completed", text: lines.length === 0 ? "There are no skills here." : joinLines(lines) };
  },
});
