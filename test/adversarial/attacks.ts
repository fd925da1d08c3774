/** Every starred case of the adversarial test plan, in its order, with relatives of the same families. */
import type { Attack, Pending } from "./attack.ts";
import { escapeAttacks } from "./escape-attacks.ts";
import { fileAttacks } from "./file-attacks.ts";
import { gitAttacks } from "./git-attacks.ts";
import { leftAttacks } from "./left-attacks.ts";
import { mcpAttacks } from "./mcp-attacks.ts";
import { modelAttacks } from "./model-attacks.ts";
import { processAttacks } from "./process-attacks.ts";
import { sandboxAttacks } from "./sandbox-attacks.ts";
import { secretAttacks } from "./secret-attacks.ts";
import { shellAttacks } from "./shell-attacks.ts";
import { terminalAttacks } from "./terminal-attacks.ts";
import { trustAttacks } from "./trust-attacks.ts";

export const attacks: readonly Attack[] = [
  ...trustAttacks,
  ...shellAttacks,
  ...fileAttacks,
  ...sandboxAttacks,
  ...escapeAttacks,
  ...leftAttacks,
  ...secretAttacks,
  ...mcpAttacks,
  ...modelAttacks,
  ...terminalAttacks,
  ...gitAttacks,
  ...processAttacks,
];

const server = "comes with the server";
export const pending: readonly Pending[] = [
  { id: "G01", title: "no token, or a wrong one", reason: server },
  { id: "G02", title: "a foreign Host", reason: server },
  { id: "G03", title: "a foreign Origin", reason: server },
  { id: "G08", title: "markup in titles, names and outputs", reason: server },
];
