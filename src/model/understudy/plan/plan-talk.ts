/** Answers to prompts that are not questions about files. */

import { plural } from "../../../lib/text.ts";
import type { Message } from "../../../protocol/message.ts";
import { exchangesIn } from "../project/evidence.ts";
import { heading, inlineText, limitRows, list, writeAnswer } from "../write-answer.ts";
import type { UnderstudyStep } from "./plan.ts";

const ABILITIES = [
  "- map a repository: *how is this project organised?*",
  "- find things: *where is `parseConfig` defined?*, *who uses `Session`?*, *where are errors handled?*",
  "- describe a file or folder: *explain src/server.ts*, *summarise docs/*",
  "- say what git and the change log tell: *what changed?*",
  '- describe piped text, such as a log, a diff, JSON or a stack trace: `npm test 2>&1 | troupe -p "what failed?"`',
];

const LIMITS = "I read and search; I do not reason, write code, fix bugs or hold a conversation.";

export function talk(kind: "greeting" | "thanks" | "help"): UnderstudyStep {
  if (kind === "thanks") return answer(["You are welcome."]);
  return answer([
    kind === "greeting"
      ? "Hello. I work without a network and without a key."
      : "I am the model troupe falls back on when no other is configured.",
    heading("What I can do", ABILITIES),
    LIMITS,
  ]);
}

/** Returns the sentence above a partial answer to a request that rules cannot fulfil. */
export function cannot(verb: string): string {
  if (verb.startsWith("find ")) return noJudgement(verb);
  if (verb === "chat") return `I did not find a question in this that I can answer. ${LIMITS}`;
  return `I cannot do this (“${verb}”). ${LIMITS} With a real model troupe can.`;
}

export function beyondWords(verb: string): UnderstudyStep {
  return answer([cannot(verb), heading("What I can do", ABILITIES)]);
}

function noJudgement(verb: string): string {
  return `I cannot ${verb}: that needs reasoning, not a search. ${LIMITS}`;
}

/** Summarises the conversation for a compaction. */
export function recap(messages: readonly Message[], prompts: readonly string[]): UnderstudyStep {
  const seen = exchangesIn(messages);
  const paths = [
    ...new Set(
      seen.flatMap((exchange) => (typeof exchange.arguments.path === "string" ? [exchange.arguments.path] : [])),
    ),
  ];
  const answers = messages.flatMap((message) =>
    message.role === "assistant" && message.calls.length === 0 && message.content !== "" ? [message.content] : [],
  );
  const firstOf = (text: string) => inlineText(text.split("\n").find((line) => line.trim() !== "") ?? "", 200);
  return answer([
    `${plural(prompts.length - 1, "request")} so far, ${plural(seen.length, "tool call")}.`,
    heading(
      "What was asked",
      limitRows(
        prompts.slice(0, -1).map((prompt) => `- ${firstOf(prompt)}`),
        20,
        "more requests",
      ),
    ),
    heading(
      "How the answers began",
      limitRows(
        answers.map((text) => `- ${firstOf(text)}`),
        20,
        "more answers",
      ),
    ),
    paths.length === 0
      ? []
      : [
          `**Files and folders looked at:** ${list(
            paths.map((path) => `\`${path}\``),
            30,
          )}`,
        ],
  ]);
}

function answer(sections: readonly (string | string[])[]): UnderstudyStep {
  return { kind: "answer", text: writeAnswer(sections) };
}
