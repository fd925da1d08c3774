/** I: bytes that drive a terminal, on every surface that prints. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Attack, Findings } from "./attack.ts";
import { bash, call, type Stage, write } from "./stage.ts";

export const terminalAttacks: readonly Attack[] = [
  { id: "I01", title: "control bytes on every surface", control: "weakened program", run: everySurface },
];

const EVIL = [
  "\u001b[2J\u001b[1;1H",
  "\u001b]0;owned\u0007",
  "\u001b]8;;http://evil/\u0007click\u001b]8;;\u0007",
  "\u001b]52;c;cHduZWQ=\u0007",
  "\u001bP1$r\u001b\\",
  "\u001b_apc\u001b\\",
  "\u009b31m\u009d0;owned\u009c",
  "\u0007\u0007\u0007",
  "safe\roverwritten",
  "abc\b\b\bxyz",
  "\u202egnp.exe",
  "\u001b[31mred\u001b[0m",
  "\u007f\u0000",
].join(" ");
/** File names hold no NUL and no slash. */
const EVIL_NAME = `evil${EVIL.replaceAll("\u0000", "").replaceAll("/", "").slice(0, 60)}.txt`;

/** Our own: back to the start of the line, some lines up, and clear from there. */
const OWN = /\r(?:\u001b\[\d{1,3}A)?\u001b\[[KJ]/g;
/** Our own: an answer's link is underlined. The pair must enclose plain text only. */
const OWN_LINK = /\u001b\[4m([^\u0000-\u001f\u007f-\u009f]*)\u001b\[24m/g;

/** What a terminal would act on, apart from our own; the attack holds nothing that could be taken for it. */
export function hostileBytes(text: string): string[] {
  const others = text.replaceAll(OWN, "").replaceAll(OWN_LINK, "$1").replaceAll("\r\n", "\n");
  const found = others.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g) ?? [];
  return [...new Set(found)].map((character) => `U+${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

async function everySurface(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  stage.files({ [EVIL_NAME]: `content ${EVIL}\n`, "b.txt": "one\n" });
  hostileFolder(stage);
  const steps = [
    call("view", { path: EVIL_NAME }),
    call("glob", { pattern: "*" }),
    bash(`echo '${EVIL}'; echo '${EVIL}' >&2`),
    bash(`true ${EVIL}`),
    call("edit", { path: "b.txt", old_str: "one", new_str: EVIL }),
    call("create", { path: `made-${EVIL_NAME}`, file_text: EVIL }),
    call(`tool${EVIL}`, { path: EVIL }),
    call("view", { path: `missing ${EVIL}` }),
    call("update_todo", { todos: `- [ ] ${EVIL}` }),
    { say: `The answer is ${EVIL}` },
  ];
  const flags = ["--allow-all", "--trust-folder", "--log-level", "debug", "--name", "evil"];
  const surfaces: { name: string; said: string }[] = [];
  const environment = { TROUPE_SANDBOX: "auto", TERM: "xterm" };
  const look = (name: string, said: string): void => void surfaces.push({ name, said });
  const piped = await stage.prompt({ steps, flags, environment, format: "text" });
  look("progress", piped.stderr);
  const shown = await stage.prompt({ steps, flags: flags.slice(0, 4), environment, format: "text", terminal: true });
  look("a terminal", shown.said);
  const json = await stage.prompt({ steps, flags: flags.slice(0, 4), environment, terminal: true });
  look("json on a terminal", json.said);
  const commands = [
    ["sessions", "list"],
    ["sessions", "show", "evil"],
    ["sessions", "search", "answer"],
    ["undo", "--list"],
    ["mcp", "list"],
    ["mcp", "get", "evil"],
    ["trust", "--yes"],
    ["trust", "list"],
    ["undo"],
    [`sess${EVIL.replaceAll("\u0000", "")}`],
    ["-p", "x", "--model", EVIL.replaceAll("\u0000", "")],
    ["-p", "x", "--allow-tool", `shell(${EVIL.replaceAll("\u0000", "")})`],
    ["-p", "x", "-C", EVIL.replaceAll("\u0000", "")],
  ];
  for (const args of commands) {
    const { said } = await stage.troupe(args, { environment, terminal: true });
    look(
      args
        .slice(0, 2)
        .join(" ")
        .slice(0, 20)
        .replace(/[^ -~]/g, ""),
      said,
    );
  }
  for (const { name, said } of surfaces)
    for (const bytes of hostileBytes(said)) findings.effect(true, `${bytes} on ${name}`);
  if (stage.guarded) {
    findings.expect(
      surfaces.every(({ said }) => said.length > 0),
      "something on every surface",
    );
    findings.expect(piped.code === 0, `exit code 0, not ${piped.code}: ${piped.stderr.slice(-300)}`);
  }
  return findings;
}

/** Hooks, servers and settings whose every text is hostile. */
function hostileFolder(stage: Stage): void {
  const evil = EVIL.replaceAll("\u0000", "");
  mkdirSync(join(stage.workspace, ".troupe"), { recursive: true });
  const hook = { bash: `true ${evil}` };
  stage.files({
    ".troupe/hooks/evil.json": JSON.stringify({ version: 1, hooks: { sessionEnd: [hook], [evil]: [hook] } }),
    ".troupe/settings.json": JSON.stringify({ [evil]: 1, permissions: { deny: [`shell(${evil}`] } }),
    ".mcp.json": JSON.stringify({
      mcpServers: { [`x${evil}`]: { command: evil }, evil: { command: evil, args: [evil] } },
    }),
    "AGENTS.md": evil,
  });
  write(
    join(stage.state, "mcp-config.json"),
    JSON.stringify({ mcpServers: { evil: { command: evil, args: [evil] } } }),
  );
}
