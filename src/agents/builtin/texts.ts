/** The built-in definitions by name, in display order. To add one, add a Markdown file and an entry here. */
import codeReview from "./code-review.md";
import explore from "./explore.md";
import generalPurpose from "./general-purpose.md";
import githubContext from "./github-context.md";
import remAgent from "./rem-agent.md";
import research from "./research.md";
import rubberDuck from "./rubber-duck.md";
import subconsciousAgent from "./subconscious-agent.md";
import task from "./task.md";

export const builtinTexts: ReadonlyMap<string, string> = new Map([
  ["explore", explore],
  ["task", task],
  ["general-purpose", generalPurpose],
  ["rubber-duck", rubberDuck],
  ["code-review", codeReview],
  ["research", research],
  ["rem-agent", remAgent],
  ["subconscious-agent", subconsciousAgent],
  ["github-context", githubContext],
]);
