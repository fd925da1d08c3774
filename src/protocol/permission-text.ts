/**
 * A permission request as text, for the user who decides. Every client shows this text or builds on the same facts. It
 * follows three rules:
 * - The danger comes first: a command that leaves the sandbox looks like no other.
 * - Text of a model or a server cannot hide, imitate or displace a part of this text. It is in fences (the text is
 * Markdown), with invisible characters named and omitted parts counted.
 * - A lasting approval is offered only if it can be given.
 */
import type { Json } from "../lib/json.ts";
import { bounded, counted, visible, visibleLine } from "../lib/visible.ts";
import type { EventData } from "./event.ts";

type PermissionRequest = EventData<"permission.requested">["permissionRequest"];
type Of<K extends PermissionRequest["kind"]> = Extract<PermissionRequest, { kind: K }>;

export interface PermissionText {
  /** One short line. */
  readonly title: string;
  /** All facts that the user needs, as Markdown. */
  readonly text: string;
  /** Whether "for this session" is a valid answer. */
  readonly canAllowForSession: boolean;
}

/** Longer commands are not shown whole, so they can be approved only once. Shorter ones are also analysed. */
export const MAX_SHOWN_COMMAND = 65_536;
/** Allows for the names of invisible characters. */
const MAX_COMMAND_TEXT = 2 * MAX_SHOWN_COMMAND;
const MAX_SHOWN_DIFF = 32_000;
const MAX_SHOWN_ARGUMENTS = 16_000;
const MAX_SHOWN_DESCRIPTION = 20_000;
const MAX_SHOWN_TEXT = 4_000;
const MAX_SHOWN_NAME = 200;
const MAX_TITLE = 120;
/** Shorter commands need no length. */
const LONG_COMMAND = 200;

export function permissionText(request: PermissionRequest): PermissionText {
  const { title, lines, canAllow } = describeRequest(request);
  return {
    title: shortened(title),
    text: lines.filter((line) => line !== undefined && line !== "").join("\n\n"),
    canAllowForSession: canAllow && request.canOfferSessionApproval !== false,
  };
}

interface Described {
  readonly title: string;
  readonly lines: readonly (string | undefined)[];
  readonly canAllow: boolean;
}

function describeRequest(request: PermissionRequest): Described {
  switch (request.kind) {
    case "shell":
      return command(request);
    case "write":
      return write(request);
    case "read":
      return { title: `Read ${request.path}`, lines: [block("Read", request.path)], canAllow: true };
    case "url":
      return address(request);
    case "mcp":
      return mcpTool(request);
    case "memory":
      return memory(request);
    case "custom-tool":
      return {
        title: `Tool ${request.toolName}`,
        lines: [
          `Tool: ${code(request.toolName)}`,
          block("Description", request.toolDescription, MAX_SHOWN_DESCRIPTION),
          args(request.args),
        ],
        canAllow: true,
      };
    case "hook":
      return {
        title: `A hook asks about ${request.toolName}`,
        lines: [
          `A hook asks you to review a call of the tool ${code(request.toolName)}.`,
          block("The hook says", request.hookMessage),
          args(request.toolArgs),
        ],
        canAllow: false,
      };
    case "extension-permission-access":
      return {
        title: `Extension ${request.extensionName} wants to: ${request.capabilities.join(", ")}`,
        lines: [
          `The extension ${code(request.extensionName)} asks for rights that only you can give:`,
          list(request.capabilities),
        ],
        canAllow: true,
      };
    case "extension-env-access":
      return {
        title: `Extension ${request.extensionName} wants: ${request.environmentVariables.join(", ")}`,
        lines: [
          `The extension ${code(request.extensionName)} wants the values of these environment variables:`,
          list(request.environmentVariables),
        ],
        canAllow: true,
      };
  }
}

function command(request: Of<"shell">): Described {
  const { fullCommandText, requestSandboxBypass: leaves = false, warning, commands } = request;
  const programs = commands.map(({ identifier }) => code(identifier)).join(", ");
  const lines = [
    leaves ? OUTSIDE : undefined,
    warningOf(warning),
    block(`Command${lengthOf(fullCommandText)}`, fullCommandText, MAX_COMMAND_TEXT),
    programs === "" ? undefined : `Programs: ${programs}`,
    reason(request),
  ];
  const title = leaves ? `OUTSIDE the sandbox: ${fullCommandText}` : fullCommandText;
  return { title, lines, canAllow: !leaves };
}

function warningOf(warning = ""): string | undefined {
  const rest = warning.startsWith(OUTSIDE) ? warning.slice(OUTSIDE.length).trim() : warning;
  return rest === "" ? undefined : `Warning: ${visible(rest)}`;
}

/** Shown first, and with the same text everywhere. */
export const OUTSIDE = "Runs OUTSIDE the sandbox: with all your rights, all your files and full network access.";

const lengthOf = (text: string): string => (text.length > LONG_COMMAND ? ` (${counted(text.length)} characters)` : "");

function write(request: Of<"write">): Described {
  const { fileName, namedAs, diff } = request;
  const lines = [
    block("File", fileName),
    namedAs === undefined ? undefined : block("Requested under another path, which leads to this file", namedAs),
    block(`Change${lengthOf(diff)}`, diff, MAX_SHOWN_DIFF),
  ];
  return { title: `Change ${fileName}`, lines, canAllow: true };
}

function address(request: Of<"url">): Described {
  const { url, redirectedFrom } = request;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const host = parsed?.host ?? "an address that cannot be read";
  const lines = [
    `Host: ${code(host)}`,
    parsed && parsed.username + parsed.password !== ""
      ? "Warning: the part before the @ is a user name, not the host."
      : undefined,
    block(`Address${lengthOf(url)}`, url, MAX_SHOWN_ARGUMENTS),
    redirectedFrom === undefined ? undefined : block("Redirected from", redirectedFrom),
    block("Purpose", request.intention),
  ];
  return { title: `Fetch from ${host}`, lines, canAllow: parsed !== undefined };
}

function mcpTool(request: Of<"mcp">): Described {
  const { serverName, toolName, toolTitle, toolDescription, readOnly } = request;
  const lines = [
    `MCP server: ${code(serverName)}`,
    `Tool: ${code(toolName)}`,
    toolTitle === toolName ? undefined : `The server calls it: ${code(toolTitle)}`,
    readOnly ? "The server says that it changes nothing. This is not verified." : undefined,
    block("The server's description", toolDescription, MAX_SHOWN_DESCRIPTION),
    args(request.args),
  ];
  return { title: `MCP ${serverName}: ${toolName}`, lines, canAllow: true };
}

const SCOPES = { repository: "this repository", user: "all repositories of the user" };

function memory(request: Of<"memory">): Described {
  const { fact, action, subject, citations, scope, direction, reason: why } = request;
  const verb = action === "vote" ? "Vote on" : "Remember";
  const lines = [
    block(direction === undefined ? verb : `${verb} (${direction})`, fact),
    block("About", subject),
    block("Source", citations),
    block("Scope", scope && SCOPES[scope]),
    block("Reason", why),
  ];
  return { title: `${verb}: ${fact}`, lines, canAllow: true };
}

/** The model's own description, which is not a fact. */
function reason({ intention }: { readonly intention: string }): string | undefined {
  return intention.trim() === "" ? undefined : block("The model says", intention);
}

function args(given: Json | undefined): string | undefined {
  if (given === undefined) return undefined;
  const json = JSON.stringify(given, null, 2);
  return block(`Arguments${lengthOf(json)}`, json, MAX_SHOWN_ARGUMENTS);
}

const list = (names: readonly string[]): string => names.map((name) => `- ${code(name)}`).join("\n");

/** Untrusted text, in a fence that it cannot close. */
function block(label: string, text: string | undefined, most = MAX_SHOWN_TEXT): string | undefined {
  if (text === undefined || text === "") return undefined;
  const shown = bounded(visible(text), most);
  const longest = Math.max(2, ...(shown.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return `${label}:\n${fence}\n${shown}\n${fence}`;
}

/** An untrusted name within a line. */
const code = (name: string): string => `\`${bounded(visibleLine(name), MAX_SHOWN_NAME).replaceAll("`", "'")}\``;

const shortened = (title: string): string => bounded(visibleLine(title), MAX_TITLE);
