/**
 * The work of a kill round: a scripted model behind the model server of `troupe/testing`. The conversation decides what
 * comes next. The last user message with a mark `[[role]]` names a list of steps, and the number of replies since then
 * is the place in it. So a conversation that was cut off goes on where it stands. Each effect has a token of its own.
 */
import { join } from "node:path";

const times = (count, step) => Array.from({ length: count }, () => step);

const shell = ({ testing, token }) =>
  testing.calls(["bash", { command: `echo ${token()} >> ledger.txt`, description: "Note it" }]);
const slowShell = ({ testing, token, random }) => {
  const seconds = (random() * 0.1).toFixed(3);
  return testing.calls([
    "bash",
    { command: `sleep ${seconds}; echo ${token()} >> ledger.txt`, description: "Note it" },
  ]);
};
/** Leaves a process at work that must not outlive the program, however that ends. */
const lingering = ({ testing, token }) => {
  const command = `echo ${token()} >> ledger.txt; trap '' HUP; sleep 60`;
  return testing.calls(["bash", { command, description: "Note it and wait", mode: "async" }]);
};
const create = ({ testing, token, workspace }) => {
  const name = token();
  return testing.calls(["create", { path: join(workspace, `${name}.txt`), file_text: `${name}\n` }]);
};
const view = ({ testing, workspace }) => testing.calls(["view", { path: join(workspace, "notes.txt") }]);
const both = ({ testing, token }) =>
  testing.calls(...times(2).map(() => ["bash", { command: `echo ${token()} >> ledger.txt`, description: "Note it" }]));
/** `agents(["background", "worker"], …)`: one agent for each pair, all in one reply. */
const agents =
  (...wanted) =>
  ({ testing, token }) =>
    testing.calls(
      ...wanted.map(([mode, role]) => {
        const name = `${role}-${token()}`.toLowerCase();
        const prompt = `Do your part. [[${role}]]`;
        return ["task", { description: role, prompt, agent_type: "general-purpose", name, mode }];
      }),
    );
const background = (count, role) => agents(...times(count, ["background", role]));
const read = (nth) => (at) =>
  at.testing.calls(["read_agent", { agent_id: at.started[nth % at.started.length], wait: true, timeout: 20 }]);
const tell = (nth) => (at) => {
  const message = `${at.token()}: one thing more. [[again]]`;
  return at.testing.calls(["write_agent", { agent_id: at.started[nth % at.started.length], message }]);
};
const words = ({ testing, token }) =>
  testing.together(testing.says(`${token()} ${"and so on ".repeat(400)}`).slice(0, -1), shell({ testing, token }));

const worker = [lingering, slowShell, create];
const again = [shell];
const common = { finish: [shell, create], worker, again };

/** The kinds of rounds, by what the main agent and its agents do. `lines` is about how many lines a whole run prints. */
export const kinds = {
  turns: { lines: 240, roles: { main: times(4, [lingering, create, view, both, slowShell]).flat() } },
  background: { lines: 340, roles: { main: [background(6, "worker"), shell, read(0), slowShell, read(3)] } },
  nested: {
    lines: 300,
    roles: {
      main: [agents(["background", "lead"], ["sync", "lead"]), shell, read(0)],
      lead: [background(1, "worker"), shell, agents(["sync", "again"]), read(0)],
    },
  },
  mixed: {
    lines: 250,
    roles: {
      main: [
        agents(["background", "worker"], ["sync", "worker"], ["sync", "again"]),
        both,
        background(2, "again"),
        read(0),
      ],
    },
  },
  messages: {
    lines: 270,
    roles: { main: [background(2, "worker"), tell(0), shell, read(0), tell(0), tell(1), read(1), slowShell, tell(1)] },
  },
  compaction: { lines: 200, window: 8_000, roles: { main: times(8, [words, create]).flat() } },
  server: { lines: 70, roles: { main: [lingering, create, both], queued: [shell, slowShell], steered: [shell] } },
};

/** Starts the model of one round. `tokens` lists every effect and message that it asked for. */
export async function startModel(testing, { kind, workspace, random }) {
  const { roles, window } = kinds[kind];
  const tokens = [];
  const played = new Map();
  const token = () => {
    tokens.push(`T${tokens.length + 1}`);
    return tokens.at(-1);
  };
  const answer = ({ request }) => {
    if (!request || request.tools.length === 0 || isSummary(request.messages)) return testing.says(SUMMARY);
    const { role, step, started } = placeIn(request.messages);
    // A summary takes replies out of the conversation, so where there are summaries the model counts by itself.
    const place = window === undefined ? step : (played.get(role) ?? 0);
    played.set(role, place + 1);
    const next = { ...common, ...roles }[role]?.[place];
    const moves = next ? next({ testing, token, workspace, random, started }) : testing.says(`done: ${role}`);
    return testing.withFaults(moves, { delayMs: Math.floor(random() * 15) });
  };
  const server = await testing.modelServer({ models: ["scripted"], handler: answer });
  return { server, tokens };
}

function placeIn(messages) {
  const at = messages.findLastIndex(({ role, content }) => role === "user" && /\[\[\w+\]\]/.test(content));
  const role = at < 0 ? "finish" : [...messages[at].content.matchAll(/\[\[(\w+)\]\]/g)].at(-1)[1];
  const step = messages.slice(at + 1).filter((message) => message.role === "assistant").length;
  const calls = messages.flatMap((message) => (message.role === "assistant" ? message.calls : []));
  return { role, step, started: calls.filter(({ name }) => name === "task").map((call) => call.arguments.name) };
}

const SUMMARY =
  "<overview>o</overview><history>h</history><work_done>w</work_done><technical_details>t</technical_details><important_files>f</important_files><next_steps>n</next_steps><checkpoint_title>Work</checkpoint_title>";

const isSummary = (messages) => String(messages.at(-1)?.content).startsWith("Stop working now and write a summary");
