/** Messages for the model and the user when an access was denied. */

import { clip, sanitise } from "../lib/text.ts";
import { visible } from "../lib/visible.ts";
import { isSink } from "./devices.ts";
import type { Decision, PermissionQuestion } from "./policy.ts";
import { urlOrigin } from "./urls.ts";

const MAX_REASON = 500;
const MAX_FLAG_COMMANDS = 5;

/** Returns the message for the model: whether to try something else, and in which direction. */
export function denialForModel(decision: Decision, question: PermissionQuestion): string {
  const reason = clip(sanitise(decision.reason), MAX_REASON);
  if (decision.decision === "deny") {
    const final = "Do not repeat or reword the call; use another approach or tell the user.";
    return `Permission denied: ${reason}. ${final}`;
  }
  const flag = allowingFlag(question, decision);
  const hint = flag === undefined ? "" : ` The user can allow it with ${flag}.`;
  return `Permission denied and could not request permission from user: ${reason}.${hint}`;
}

/** Returns the message for the user, on one line. */
export function denialForUser(decision: Decision, question: PermissionQuestion): string {
  const what = clip(sanitise(subject(question)).replace(/\s+/g, " "), 120);
  const flag = decision.decision === "deny" ? undefined : allowingFlag(question, decision);
  const reason = clip(sanitise(decision.reason), MAX_REASON);
  return `${question.toolName} denied (${what}): ${reason}${flag === undefined ? "" : `; allow with ${flag}`}`;
}

/** Returns the flags that would have allowed the access, or undefined when no flag would. */
export function allowingFlag(question: PermissionQuestion, decision: Decision): string | undefined {
  const { access, analysis } = question;
  if (decision.decision !== "ask" || decision.by === "rule") return undefined;
  if (decision.code === "outside_folders") return "--add-dir <folder> or --allow-all-paths";
  if (decision.by === "policy") {
    return access.kind === "write" ? `--allow-consent-path '${visible(access.written ?? access.path)}'` : undefined;
  }
  switch (access.kind) {
    case "shell": {
      if (analysis === undefined) return undefined;
      const needed = analysis.commands.filter((command) => !command.transparent);
      const isPlain = analysis.plain && decision.code !== "not_plain";
      const coverable = isPlain && needed.every((command) => command.certain && !command.escapes);
      const names = [...new Set(needed.map((command) => command.identifier))];
      if (!coverable || names.length > MAX_FLAG_COMMANDS || !names.every(isPlainRule)) return "--allow-tool shell";
      const writes = analysis.redirections.some((one) => one.write && !isSink(one.target));
      return [...names.map((name) => `--allow-tool 'shell(${name})'`), ...(writes ? ["--allow-tool write"] : [])].join(
        " ",
      );
    }
    case "read":
    case "write":
    case "memory":
      return `--allow-tool ${access.kind}`;
    case "url": {
      const origin = urlOrigin(access.url);
      return origin === undefined ? undefined : `--allow-url '${origin}'`;
    }
    case "mcp":
      return `--allow-tool '${access.serverName}(${access.toolName})'`;
    case "mcp-sampling":
      return `--allow-tool 'mcp-sampling(${access.serverName})'`;
    case "custom-tool":
      return `--allow-tool '${access.toolName}'`;
    case "agent":
      return `--allow-tool 'agent(${access.agentName})'`;
    case "extension-permission-access":
    case "extension-env-access":
    case "sandbox-off":
    case "hook":
      return undefined;
  }
}

function subject({ access }: PermissionQuestion): string {
  switch (access.kind) {
    case "shell":
      return access.command;
    case "read":
    case "write":
      return access.path;
    case "url":
      return access.url;
    case "mcp":
      return `${access.serverName}(${access.toolName})`;
    case "memory":
      return access.fact;
    case "mcp-sampling":
      return `a model call for ${access.serverName}`;
    case "sandbox-off":
      return `without the sandbox: ${access.command}`;
    case "agent":
      return access.agentName;
    case "extension-permission-access":
    case "extension-env-access":
      return `the extension ${access.extensionName}`;
    case "custom-tool":
    case "hook":
      return access.toolName;
  }
}

function isPlainRule(name: string): boolean {
  return /^[\w./@+:-]+(?: [\w./@+:-]+)?$/.test(name);
}
