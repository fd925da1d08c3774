/** The replies of a stage's model. It decides from the conversation alone, so that any process gets the same reply. */

import { calls, type Moves, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { HttpPlay } from "../../src/testing/index.ts";

/** Replies to prompts that contain a word. The number of replies in the conversation decides which one is next. */
export type Plays = ReadonlyMap<string, readonly HttpPlay[]>;

export function nextReply(
  request: ModelRequest | undefined,
  { plays, ledger }: { plays: Plays; ledger: string },
): HttpPlay {
  const messages = request?.messages ?? [];
  const texts = messages.map((message) => ({ text: JSON.stringify(message), role: message.role }));
  const found = [...plays].map(([word, steps]) => ({
    steps,
    from: texts.findLastIndex(({ text, role }) => role === "user" && text.includes(word)),
  }));
  const { steps, from } = found.reduce((one, other) => (other.from > one.from ? other : one), { steps: [], from: -1 });
  if (from === -1) return act(request, ledger);
  const replies = texts.slice(from).filter(({ role }) => role === "assistant").length;
  return steps[replies] ?? says("the script has no such step");
}

/** A prompt that makes the model cause one effect for each token. */
export const promptOf = (kind: string, tokens: readonly string[]): string => `Act. [[${kind}:${tokens.join(",")}]]`;

/** The marker of the first message names the tokens; a token whose result is there is done. */
function act(request: ModelRequest | undefined, ledger: string): Moves {
  const text = JSON.stringify(request?.messages ?? []);
  const [, kind = "act", list = ""] = /\[\[(act|team|held|poison):([^\]]*)\]\]/.exec(text) ?? [];
  const results = JSON.stringify(request?.messages.filter(({ role }) => role === "tool") ?? []);
  const isDone = (token: string): boolean => results.includes(`acted ${token}`);
  const open = list.split(",").filter((token) => token !== "" && !isDone(token));
  const isAgent = list.startsWith("agent-");
  if (open.length === 0) return says(isAgent ? `acted ${list.slice("agent-".length)}` : "all done");
  if (kind === "team") return calls(...open.map((token) => ["task", taskFor(token), callId()] as const));
  const [token = ""] = open;
  return calls(["bash", { command: commandFor(kind, token, ledger), description: "act" }, callId()]);
}

const callId = (): string => `call_${crypto.randomUUID().slice(0, 13)}`;

const taskFor = (token: string) => ({
  ...{ agent_type: "general-purpose", name: token, description: "act", mode: "sync" },
  prompt: `Act. [[act:agent-${token}]]`,
});

function commandFor(kind: string, given: string, ledger: string): string {
  const token = given.replace(/^agent-/, "");
  // Kills the worker: the parent of the shell, whichever that is.
  if (kind === "poison") return `kill -9 $(cat "$PWD/../../../$(basename "$(dirname "$(dirname "$PWD")")" -work).pid")`;
  const wait = kind === "held" ? `while [ ! -e '${ledger}.go' ]; do sleep 0.1; done; ` : "";
  return `${wait}env -u LD_PRELOAD date +"$PWD %s%N ${token}" >> '${ledger}'; sleep 0.05; echo acted ${given}`;
}
