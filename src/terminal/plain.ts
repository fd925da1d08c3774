/**
 * The terminal as labelled lines: no cursor movement, no colours, numbered menus. For screen readers, dumb terminals and
 * logs. A number answers the menu that is open; any other line is a prompt.
 */

import { createInterface } from "node:readline";
import { defined } from "../lib/defined.ts";
import type { Client } from "../sdk/client.ts";
import type { Block } from "../view/blocks.ts";
import type { AttentionItem } from "../view/view.ts";
import { openAttention } from "../view/waits.ts";
import { addressOf } from "./attention.ts";
import { findSession } from "./find-session.ts";
import { isUnderstudy, noModel } from "./first-run.ts";
import { mentionedIn } from "./input/mentions.ts";
import {
  leaveSession,
  openOrJoin,
  SHOWN_BLOCKS,
  type TrustQuestion,
  trustChoices,
  trustedName,
  trustTitle,
} from "./open-session.ts";
import { addressLines, requestLines } from "./panels/request-lines.ts";
import type { PlainAnswer, PlainQuestion } from "./plain-form.ts";
import { type MenuEntry, menuLabels, menuOf } from "./plain-menu.ts";
import { safe, safeLine } from "./screen/safe.ts";
import { plainStyle } from "./screen/style.ts";
import type { TerminalSession } from "./session.ts";
import type { Join, SessionChoice } from "./session-choice.ts";
import { blockLines, errorLines } from "./transcript/block-lines.ts";
import { runUserCommand } from "./user-command.ts";

export interface PlainOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly cwd: string;
  readonly version: string;
  readonly sessionChoice: SessionChoice;
  /** A line for the user. */
  readonly notice?: string | undefined;
  connect(): Promise<Client>;
  readonly join?: Join | undefined;
  trust(): Promise<TrustQuestion | undefined>;
}

const CHOICES_MS = 100;

/** Runs until the input ends, `/exit`, or Ctrl+C at rest. */
export async function runPlain(options: PlainOptions): Promise<void> {
  const plain = new PlainTerminal(options);
  try {
    await plain.run();
  } finally {
    await plain.close();
  }
}

class PlainTerminal {
  readonly #options: PlainOptions;
  readonly #lines: AsyncIterableIterator<string>;
  readonly #reader;
  #client: Client | undefined;
  #session: TerminalSession | undefined;
  #menu: { readonly item: AttentionItem; readonly entries: readonly MenuEntry[] } | undefined;
  /** The next line answers this. It ends with the menu. */
  #question: PlainQuestion | undefined;
  /** Output of `!` commands that goes along with the next prompt. */
  readonly #shellOutput: string[] = [];
  /** A request whose choices were waited for. */
  #awaited: string | undefined;
  #wasBusy = false;

  constructor(options: PlainOptions) {
    this.#options = options;
    this.#reader = createInterface({ input: options.input, terminal: false });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  async run(): Promise<void> {
    const { cwd, version, sessionChoice } = this.#options;
    this.#print(`troupe ${version} in ${safeLine(cwd)}. Type a prompt, /help or /exit.`);
    if (this.#options.notice !== undefined) this.#print(`notice: ${safeLine(this.#options.notice)}`);
    await this.#askForTrust();
    const stop = (): void => this.#interrupt();
    process.on("SIGINT", stop);
    for (const signal of ["SIGTERM", "SIGHUP"] as const) process.once(signal, () => this.#reader.close());
    try {
      this.#client = await this.#options.connect();
      const resumeId = await findSession(this.#client, sessionChoice, cwd);
      const gone = (): void => {
        this.#print("notice: the terminal that had this session open was closed. Resume the session to continue.");
        this.#reader.close();
      };
      const newId = sessionChoice.kind === "id" ? sessionChoice.sessionId : undefined;
      const { session } = await openOrJoin({
        client: this.#client,
        ...(sessionChoice.kind === "attach" && { join: this.#options.join }),
        gone,
        cwd,
        resumeId,
        ...defined({ newId }),
        onChange: (changed) => {
          if (changed === this.#session) this.#update();
        },
      });
      if (session.client !== this.#client) await this.#client.stop();
      this.#client = session.client;
      this.#session = session;
      for (const block of session.drain().slice(-SHOWN_BLOCKS)) this.#print(...plainLines(block));
      await session.readCommands();
      this.#print(`ready: model ${safeLine(session.view.session.model ?? "none")}`);
      if (isUnderstudy(session.view.session.model)) this.#print(...noModel.map((line) => `notice: ${line}`));
      this.#update();
      for await (const line of this.#lines) if ((await this.#line(line)) === "exit") return;
    } finally {
      process.off("SIGINT", stop);
    }
  }

  async close(): Promise<void> {
    this.#reader.close();
    const resumption = await leaveSession(this.#session, this.#client);
    if (resumption !== undefined) this.#print(resumption);
  }

  async #askForTrust(): Promise<void> {
    const question = await this.#options.trust();
    if (!question) return;
    this.#print(
      `question: ${safeLine(trustTitle(question))}:`,
      ...question.items.flatMap((item) => [
        `  ${safeLine(trustedName(item))}`,
        ...safe(item.shown)
          .split("\n")
          .map((row) => `  | ${row}`),
      ]),
      ...trustChoices.map((choice, index) => `  ${index + 1}. ${choice}`),
    );
    const { value } = await this.#lines.next();
    if (String(value).trim() === "1") await question.accept();
  }

  async #line(line: string): Promise<"exit" | undefined> {
    const text = line.trim();
    const question = this.#question;
    if (question) {
      await this.#answer(question.answer(text)).catch((error: unknown) => this.#fail(error));
      return undefined;
    }
    if (text === "") return undefined;
    if (text === "/exit" || text === "/quit") return "exit";
    const entries = /^\d+$/.test(text) ? (this.#menu?.entries ?? []) : [];
    const entry = entries[Number(text) - 1];
    if (!entry && entries.length > 0) {
      this.#print(`There is no choice ${text}: type 1 to ${entries.length}.`);
      return undefined;
    }
    const work = entry ? this.#answer(entry.answer()) : this.#send(text);
    await work.catch((error: unknown) => this.#fail(error));
    return undefined;
  }

  async #answer(answered: PlainAnswer): Promise<void> {
    const menu = this.#menu;
    this.#question = undefined;
    const result = await answered;
    if (result === false) this.#print("notice: it was answered elsewhere");
    // The request may have ended meanwhile.
    if (typeof result === "boolean" || this.#menu !== menu) return;
    if (result === "back") this.#printMenu();
    else {
      this.#question = result;
      this.#print(...result.lines.map(safeLine));
    }
  }

  async #send(text: string): Promise<void> {
    const session = this.#session;
    if (!session) return;
    if (text.startsWith("!")) {
      const output = await runUserCommand(session, text);
      if (output !== undefined) this.#shellOutput.push(output);
      return;
    }
    if (!text.startsWith("/")) {
      const attachments = await mentionedIn(text, this.#options.cwd);
      return session.send(text, "steer", { attachments, before: this.#shellOutput.splice(0) });
    }
    const said = await session.submit(text);
    if (said !== undefined) this.#print(...safe(said).trimEnd().split("\n"));
  }

  #update(): void {
    const session = this.#session;
    if (!session) return;
    for (const block of session.drain()) this.#print(...plainLines(block));
    const isBusy = session.view.main.status === "running";
    if (this.#wasBusy && !isBusy) this.#print("ready");
    this.#wasBusy = isBusy;
    const [item] = openAttention(session.view);
    if (item?.id === this.#menu?.item.id) return;
    // Its choices may come with the next event.
    if (item && item.request === undefined && item.id !== this.#awaited) {
      setTimeout(() => {
        this.#awaited = item.id;
        this.#update();
      }, CHOICES_MS);
      return;
    }
    if (this.#question) this.#print("notice: the request has ended, or another client answered it");
    this.#question = undefined;
    this.#menu = item && { item, entries: menuOf(item, session) };
    this.#printMenu();
  }

  #printMenu(): void {
    if (!this.#menu) return;
    const { item, entries } = this.#menu;
    const address = addressOf(item);
    const who = item.agentId === undefined ? "" : ` (agent ${safeLine(item.agentId)})`;
    this.#print(
      `${address === undefined ? menuLabels[item.kind] : "address to open"}${who}: ${safeLine(item.title)}`,
      ...requestLines(safe(item.text)).map((row) => `  | ${row}`),
      ...addressLines(address).map((row) => `  | ${safeLine(row)}`),
      ...entries.map(({ label }, index) => `  ${index + 1}. ${safeLine(label)}`),
    );
  }

  #interrupt(): void {
    if (this.#wasBusy) void this.#session?.interrupt().catch((error: unknown) => this.#fail(error));
    else this.#reader.close();
  }

  #fail(error: unknown): void {
    this.#print(`error: ${errorLines(error, plainStyle).join("\n").replace(/^✗ /, "")}`);
  }

  #print(...lines: readonly string[]): void {
    this.#options.output.write(lines.map((line) => `${line}\n`).join(""));
  }
}

const labels: Readonly<Record<Block["kind"], string>> = {
  user: "you",
  assistant: "troupe",
  reasoning: "thinking",
  tool: "tool",
  notice: "notice",
  error: "error",
  approval: "permission",
  answer: "question",
  plan: "plan",
  compaction: "notice",
  mode: "notice",
  model: "notice",
  agent: "agent",
  completion: "complete",
  rewind: "notice",
};

/** The label stands before the first line; marks that only look like something are left out. */
function plainLines(block: Block): string[] {
  const lines = blockLines(block, { style: plainStyle }).filter((line) => line !== "");
  const [first = "", ...rest] = lines;
  return [`${labels[block.kind]}: ${first.replace(/^[●◆›✓✗?!] /, "")}`, ...rest];
}
