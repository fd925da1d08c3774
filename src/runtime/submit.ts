/**
 * Handles user input at any surface: a prompt, a command or a skill name. Commands make prompts, switch modes or answer
 * from session state. In autopilot the agent continues until the work is done.
 */

import { existsSync } from "node:fs";
import type { Command, CommandResult, Gate, PromptResult, SessionMode } from "../commands/command.ts";
import type { StopGate } from "../commands/gate.ts";
import { deferred } from "../lib/deferred.ts";
import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import {
  type AutopilotOptions,
  type AutopilotStop,
  type AutopilotVerdict,
  type CheckResult,
  checkVerdict,
  runAutopilot,
} from "../session/modes/autopilot.ts";
import { RunFactsFold, stopOf } from "../session/modes/run-facts.ts";
import type { Outcome, SendOptions, Session } from "../session/session.ts";
import type { AnswerRules, StoredRules } from "../session/turn/pending-messages.ts";
import { contextOf } from "./command-context.ts";

export type SubmitResult =
  /** A command answered without the agent. */
  | { readonly kind: "said"; readonly text: string }
  /** `verdict` is the result of the whole task in autopilot, or of `check`. */
  | { readonly kind: "answered"; readonly outcome: Outcome; readonly verdict?: AutopilotVerdict };

export interface PromptSubmitOptions extends AutopilotOptions {
  /** Adds data to the prompt. The data is never parsed as a command. */
  readonly withData?: (prompt: string) => string;
  /** False: the text was not typed by a user and is never parsed as a command. */
  readonly isTyped?: boolean;
  /** Sent along with a prompt, and with no command. */
  readonly attachments?: SendOptions["attachments"];
  /** Called with the id of the message once it is accepted. */
  readonly accepted?: (messageId: string) => void;
}

/**
 * Submits text or a message and waits for the answer. In autopilot the agent then continues until the verdict. Throws a
 * `TroupeError` for an unknown command.
 */
export async function submit(
  session: Session,
  input: string | SendOptions,
  options: PromptSubmitOptions = {},
): Promise<SubmitResult> {
  const message = typeof input === "string" ? await messageOf(session, input, options) : input;
  if ("kind" in message) return message;
  const autopilotRun = watchAutopilot(session);
  try {
    const beganInAutopilot = isInAutopilot(session);
    const outcome = await session.sendAndWait(message, options.accepted);
    if (beganInAutopilot || isInAutopilot(session)) return await autopilotRun.continueFrom(outcome, options);
    const { check } = options;
    if (check === undefined || outcome.kind !== "done") return { kind: "answered", outcome };
    return { kind: "answered", outcome, verdict: checkVerdict(check, await runCheck(session, check)) };
  } catch (error) {
    if (session.queue.closed.aborted) return { kind: "answered", outcome: { kind: "aborted" } };
    throw error;
  } finally {
    autopilotRun.end();
  }
}

/** Returns the message for text, or the answer of a command that needs no agent. */
async function messageOf(
  session: Session,
  text: string,
  { withData = asIs, isTyped = true, attachments }: PromptSubmitOptions,
): Promise<SendOptions | Extract<SubmitResult, { kind: "said" }>> {
  const read = isTyped ? await readTyped(session, text) : undefined;
  if (read?.kind === "said") return read;
  return read ? sendingOf(session, read, withData) : { prompt: withData(text), ...defined({ attachments }) };
}

/** The meaning of text that a user typed. */
export type Typed =
  /** A command answered without the agent, or switched the mode. */
  | { readonly kind: "said"; readonly text: string }
  | {
      readonly kind: "prompt";
      readonly prompt: string;
      readonly displayPrompt: string;
      /** True if the command limits tools, allows agents or has a gate. */
      readonly isLimited: boolean;
      /** Mode to switch to before the message is sent. */
      readonly mode?: SessionMode;
      /** Builds the message with the command's limits, agents and gate. Each message gets its own gate. */
      message(withData?: (prompt: string) => string): Promise<SendOptions>;
    };

/**
 * Runs the slash command or skill that the text calls. All surfaces run commands through this function. Returns
 * undefined for an ordinary prompt. Throws a `TroupeError` if the command is unknown, cannot run, or may not be run by
 * a program.
 */
export async function readTyped(
  session: Session,
  text: string,
  from: "user" | "program" = "user",
): Promise<Typed | undefined> {
  if (!text.trimStart().startsWith("/")) return undefined;
  const [{ runCommand }, { builtinCommands }] = await Promise.all([
    import("../commands/parse-command.ts"),
    import("../commands/list.ts"),
  ]);
  const result = await runCommand(text, contextOf(session), { commands: builtinCommands, isPath: existsSync, from });
  switch (result?.kind) {
    case undefined:
      return undefined;
    case "completed":
      return { kind: "said", text: result.text };
    case "mode":
      await session.mainAgent.modes.set(result.mode);
      return { kind: "said", text: result.text };
    case "prompt": {
      const { prompt, displayPrompt, mode, toolLimits, agents, gate } = result;
      const isLimited = [toolLimits, agents, gate].some((rule) => rule !== undefined);
      const message = (withData = asIs): Promise<SendOptions> => promptOf(session, result, withData);
      return { kind: "prompt", prompt, displayPrompt, isLimited, ...defined({ mode }), message };
    }
    case "skill": {
      const { prompt, displayPrompt } = await skillPrompt(session, result);
      const message = async (withData = asIs): Promise<SendOptions> => ({ prompt: withData(prompt), displayPrompt });
      return { kind: "prompt", prompt, displayPrompt, isLimited: false, message };
    }
  }
}

const asIs = (prompt: string): string => prompt;

/** The result of typed text at a surface that waits for events itself. */
export type Sent =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "sent"; readonly messageId: string };

/**
 * Runs a slash command or a skill, and sends its message with its limits and gate. Other text is sent as a prompt.
 * `data` is appended to the prompt and never parsed as a command. Resolves once the message is accepted. Throws a
 * `TroupeError` for an unknown command.
 */
export async function sendTyped(
  session: Session,
  typed: { readonly text: string; readonly data?: string } & Pick<SendOptions, "attachments">,
): Promise<Sent> {
  const { text, data = "", attachments } = typed;
  const withData = (prompt: string): string => (data === "" ? prompt : `${prompt}\n\n${data}`);
  const read = await readTyped(session, text);
  if (read?.kind === "said") return read;
  const send = read ? await sendingOf(session, read, withData) : { prompt: withData(text) };
  return { kind: "sent", messageId: await sendOn(session, { ...send, ...defined({ attachments }) }) };
}

/** Switches to the command's mode and builds its message. */
export async function sendingOf(
  session: Session,
  read: Extract<Typed, { kind: "prompt" }>,
  withData = asIs,
): Promise<SendOptions> {
  if (read.mode) await session.mainAgent.modes.set(read.mode);
  return read.message(withData);
}

/** Returns the built-in commands, without regard to a session. */
export async function builtinCommandList(): Promise<readonly Command[]> {
  const { builtinCommands } = await import("../commands/list.ts");
  return builtinCommands;
}

/** Returns the commands that are available in the session now. */
export async function offeredCommands(session: Session): Promise<readonly Command[]> {
  const [{ builtinCommands }, { isOffered }] = await Promise.all([
    import("../commands/list.ts"),
    import("../commands/command.ts"),
  ]);
  const context = contextOf(session);
  return builtinCommands.filter((command) => isOffered(command, context));
}

/** Returns the prompts of the session's connected MCP servers, as commands. */
export async function offeredPrompts(session: Session) {
  const prompts = (await session.workspace.services?.serverPrompts?.list()) ?? [];
  if (prompts.length === 0) return [];
  const { promptArgumentHint, promptCommandName } = await import("../commands/server-prompts.ts");
  return prompts.map((prompt) => {
    const hint = promptArgumentHint(prompt);
    const { server, description } = prompt;
    const shown = description === "" ? `A prompt of the MCP server ${server}` : description;
    return { name: promptCommandName(prompt), description: shown, ...(hint !== undefined && { input: { hint } }) };
  });
}

const inProgress = new WeakSet<Session>();

/** Resolves with the message id once it is accepted. In autopilot the agent then continues until the verdict. */
export async function sendOn(session: Session, send: SendOptions): Promise<string> {
  // While a message is being answered, further ones steer it or wait. Only the first decides when autopilot continues.
  if (inProgress.has(session)) return session.send(send);
  inProgress.add(session);
  const accepted = deferred<string>();
  submit(session, send, { accepted: accepted.resolve })
    .catch((error: unknown) => {
      accepted.reject(error);
      if (!(error instanceof TroupeError))
        session.record.warn("autopilot", `The autopilot has stopped: ${String(error)}`);
    })
    .finally(() => inProgress.delete(session));
  return accepted.promise;
}

/** Returns a message that lets a fleet do the work. It is done when its todos are. */
export async function fleetMessage(session: Session, request: string): Promise<SendOptions> {
  const { fleetPrompt } = await import("../commands/delegation/fleet.ts");
  return promptOf(session, fleetPrompt(request), asIs);
}

async function promptOf(
  session: Session,
  result: PromptResult,
  withData: (prompt: string) => string,
): Promise<SendOptions> {
  const { prompt, displayPrompt, toolLimits, agents, gate } = result;
  const kept: StoredRules = {
    ...(toolLimits && { tools: [...toolLimits.available] }),
    ...(agents && { agents: [...agents] }),
    ...defined({ gate }),
  };
  const isLimited = Object.keys(kept).length > 0;
  return {
    prompt: withData(prompt),
    displayPrompt,
    answering: isLimited ? await rulesFrom(session, kept) : {},
  };
}

/** Rebuilds a command's rules from their form in the log, also for messages of an earlier process. */
export async function rulesFrom(session: Session, stored: StoredRules): Promise<AnswerRules> {
  const { tools: available, agents, gate } = stored;
  const isResearch = gate?.kind === "research";
  const { researchLimits } = isResearch ? await import("../commands/delegation/research-limits.ts") : {};
  const tools = isResearch ? researchLimits?.(gate.reportPath) : available && { available };
  return {
    stored,
    ...defined({ tools, agents }),
    ...(gate && { gate: { name: gate.kind, ask: await stopGate(session, gate) } }),
  };
}

async function stopGate(session: Session, gate: Gate): Promise<StopGate> {
  if (gate.kind === "research") {
    const { researchGate } = await import("../commands/delegation/research-gate.ts");
    return researchGate({ reportPath: gate.reportPath, reportExists: async () => existsSync(gate.reportPath) });
  }
  const { fleetGate } = await import("../commands/delegation/fleet-gate.ts");
  return fleetGate({
    readTodos: async () => session.workspace.services?.readTodos() ?? [],
    readDependencies: async () => session.workspace.services?.readDependencies() ?? [],
    runningAgents: () =>
      session.agents.tasks?.list({ includeEnded: false }).filter(({ status }) => status !== "idle").length ?? 0,
  });
}

async function skillPrompt(
  session: Session,
  { name, request }: Extract<CommandResult, { kind: "skill" }>,
): Promise<{ readonly prompt: string; readonly displayPrompt: string }> {
  const [{ loadSkill }, { findSkill }] = await Promise.all([
    import("../context/skills/load-skill.ts"),
    import("../context/skills/skill.ts"),
  ]);
  const skill = findSkill(name, session.workspace.services?.skills ?? []);
  if (!skill) throw new Error(`the skill ${name} was listed and is gone`);
  const { context, invoked, takesRequest } = await loadSkill(skill, "user-invoked", request);
  void session.record.emit("skill.invoked", invoked);
  const prompt = request === "" || takesRequest ? context : `${context}\n\n${request}`;
  return { prompt, displayPrompt: `/${name}${request === "" ? "" : ` ${request}`}` };
}

const isInAutopilot = ({ mainAgent }: Session): boolean => mainAgent.modes.current === "autopilot";

/** Watches the session during an answer, and continues it in autopilot. */
function watchAutopilot(session: Session) {
  const fold = new RunFactsFold();
  const { modes } = session.mainAgent;
  let hasContinued = false;
  modes.autopilotRuns++;
  const stopListening = session.subscribe((event) => fold.apply(event));
  return {
    async continueFrom(first: Outcome, options: AutopilotOptions): Promise<SubmitResult> {
      hasContinued = true;
      let outcome = first;
      const judged = (): AutopilotStop =>
        stopOf(outcome, {
          facts: fold.take(),
          pending: session.queue.isPending,
          autopilot: isInAutopilot(session),
        });
      const verdict = await runAutopilot(judged(), options, {
        async send(message) {
          outcome = await session.sendAndWait({ prompt: message, displayPrompt: "", source: "autopilot" });
          return judged();
        },
        async nextStop() {
          await session.queue.whenIdle();
          return judged();
        },
        runCheck: (command) => runCheck(session, command),
        checkFailed: (text) => session.record.warn("autopilot", text),
      });
      return { kind: "answered", outcome, verdict };
    },
    end(): void {
      stopListening();
      modes.autopilotRuns--;
      // Earlier idle events were marked as autopilot's; this one ends the work.
      if (hasContinued && !session.queue.isWorking && !session.queue.closed.aborted) {
        void session.record.emit("session.idle", {});
      }
    },
  };
}

/** Throws if the session is closed meanwhile: the check was stopped and says nothing about the work. */
async function runCheck({ record, queue, workspace }: Session, command: string): Promise<CheckResult> {
  const result = await workspace.runCheck?.(command);
  queue.closed.throwIfAborted();
  if (!result) return { exitCode: null, output: "This session runs no commands." };
  return { ...result, output: record.redactor?.text(result.output) ?? result.output };
}
