/** All generated pages of docs/reference. `npm run docs` writes them; test/docs/reference.test.ts compares them. */
import { agentFiles } from "./agent-files.ts";
import { commandLine, exitCodes, slashCommands } from "./command-line.ts";
import { environment, featureFlags, providers, settings } from "./configuration.ts";
import { events } from "./events.ts";
import { hooks } from "./hooks.ts";
import type { Page } from "./markdown.ts";
import { serverMethods } from "./server-methods.ts";

export function referencePages(): readonly Page[] {
  return [
    commandLine(),
    exitCodes(),
    slashCommands(),
    settings(),
    environment(),
    featureFlags(),
    providers(),
    agentFiles(),
    hooks(),
    events(),
    serverMethods(),
  ];
}
