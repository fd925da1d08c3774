/**
 * What a person types at any surface: a prompt, a command, or a skill by its name. Commands make prompts, switch modes
 * or answer from what the session knows; in autopilot the agent is sent on until the work is done.
 */
import { existsSync } from "node:fs";
import type { Command, CommandContext, CommandResult, Gate, PromptResult, SessionMode } from "../commands/command.ts";
import type { StopGate } from "../commands/gate.ts";
import type { TaskEntry } from "../commands/ports.ts";
import { deferred } from "../lib/deferred.ts";
import { plural } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import {
  type AutopilotOptions,
  type CheckResult,
  checkVerdict,
  fly,
  type Stop,
  type Verdict,
} from "../session/autopilot.ts";
import { modelName } from "../session/model-seat.ts";
import { stopOf } from "../session/run-facts.ts";
import type { ScheduleRegistry } from "../session/schedules.ts";
import type { Outcome, SendOptions, Session } from "../session/session.ts";
import { historyPort } from "./history-port.ts";

export type Submitted =
  /** A command has answered by itself. */
  | { readonly kind: "said"; readonly text: string }
  /** `verdict` in autopilot: what became of the task as a whole. */
  | { readonly kind: "answered"; readonly outcome: Outcome; readonly verdict?: Verdict };

export interface SubmitOptions extends AutopilotOptions {
  /** Data that goes with the prompt and is never read as a command. */
  readonly withData?: (prompt: string) => string;
  /** False: it was not typed by a person, and is never read as a command. */
  readonly isTyped?: boolean;
}

/** Throws a `TroupeError` for what looks like a command and is none. */
export async function submit(session: Session, text: string, options: SubmitOptions = {}): Promise<Submitted> {
  const { withData = (prompt) => prompt, isTyped = true } = options;
  if (!isTyped || !text.trimStart().startsWith("/")) return answer(session, { prompt: withData(text) }, options);
  const result = await commandResult(session, text);
  if (!result) return answer(session, { prompt: withData(text) }, options);
  return carryOut(session, result, options);
}

/** Undefined for an ordinary prompt. */
async function commandResult(session: Session, text: string): Promise<CommandResult | undefined> {
  const [{ runCommand }, { builtinCommands }] = await Promise.all([
    import("../commands/parse-command.ts"),
    import("../commands/list.ts"),
  ]);
  return runCommand(text, contextOf(session), { commands: builtinCommands, isPath: existsSync });
}

async function carryOut(session: Session, result: CommandResult, options: SubmitOptions): Promise<Submitted> {
  const { withData = (prompt) => prompt } = options;
  switch (result.kind) {
    case "completed":
      return { kind: "said", text: result.text };
    case "mode":
      await session.modes.set(result.mode);
      return { kind: "said", text: result.text };
    case "prompt":
      if (result.mode) await session.modes.set(result.mode);
      return answer(session, await promptOf(session, result, withData), options);
    case "skill":
      return answer(session, await skillPrompt(session, result, withData), options);
  }
}

/** What a command comes to, for a surface that sends prompts itself. */
export type Invoked =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "prompt"; readonly send: SendOptions; readonly mode?: SessionMode };

/** Throws a `TroupeError` for what is no command here. */
export async function invokeCommand(session: Session, text: string): Promise<Invoked> {
  const result = await commandResult(session, text);
  const asIs = (prompt: string): string => prompt;
  switch (result?.kind) {
    case undefined:
      throw new TroupeError("usage", `${text.trim().split(/\s/, 1)[0]} is no command here.`);
    case "completed":
      return { kind: "said", text: result.text };
    case "mode":
      await session.modes.set(result.mode);
      return { kind: "said", text: result.text };
    case "prompt":
      return { kind: "prompt", send: await promptOf(session, result, asIs), ...(result.mode && { mode: result.mode }) };
    case "skill":
      return { kind: "prompt", send: await skillPrompt(session, result, asIs) };
  }
}

/** The result of text that a user typed at a surface that waits for events itself. */
export type Sent =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "sent"; readonly messageId: string };

/**
 * Runs a slash command or a skill, and sends the message it makes with its own limits and gate. Any other text is sent as a
 * prompt. `data` is appended to the prompt and is never read as a command. Resolves once the message is accepted.
 * Throws a `TroupeError` for a command that does not exist.
 */
export async function sendTyped(
  session: Session,
  typed: { readonly text: string; readonly data?: string } & Pick<SendOptions, "attachments">,
): Promise<Sent> {
  const { text, data = "", attachments } = typed;
  const withData = (prompt: string): string => (data === "" ? prompt : `${prompt}\n\n${data}`);
  const send = async (options: SendOptions): Promise<Sent> => {
    return { kind: "sent", messageId: await sendOn(session, { ...options, ...(attachments && { attachments }) }) };
  };
  const result = await commandResult(session, text);
  switch (result?.kind) {
    case undefined:
      return send({ prompt: withData(text) });
    case "completed":
      return { kind: "said", text: result.text };
    case "mode":
      await session.modes.set(result.mode);
      return { kind: "said", text: result.text };
    case "prompt":
      if (result.mode) await session.modes.set(result.mode);
      return send(await promptOf(session, result, withData));
    case "skill":
      return send(await skillPrompt(session, result, withData));
  }
}

/** The built-in commands, as far as they need no session. */
export async function builtinCommandList(): Promise<readonly Command[]> {
  const { builtinCommands } = await import("../commands/list.ts");
  return builtinCommands;
}

/** The commands that a person could type now. */
export async function offeredCommands(session: Session): Promise<readonly Command[]> {
  const [{ builtinCommands }, { isOffered }] = await Promise.all([
    import("../commands/list.ts"),
    import("../commands/command.ts"),
  ]);
  const context = contextOf(session);
  return builtinCommands.filter((command) => isOffered(command, context));
}

const inFlight = new WeakSet<Session>();

/** Resolves with the id of the message once it is accepted. In autopilot the agent is then sent on until the verdict. */
export async function sendOn(session: Session, send: SendOptions): Promise<string> {
  // What is said to an agent on its way is steering or waits; one flight at a time decides when to go on.
  if (inFlight.has(session)) return session.send(send);
  inFlight.add(session);
  const accepted = deferred<string>();
  answer(session, send, {}, accepted.resolve)
    .catch((error: unknown) => {
      accepted.reject(error);
      if (!(error instanceof TroupeError)) session.warn("autopilot", `The autopilot has stopped: ${String(error)}`);
    })
    .finally(() => inFlight.delete(session));
  return accepted.promise;
}

/** A message that has a fleet do the work; it counts as done when its todos are. */
export async function fleetMessage(session: Session, wish: string): Promise<SendOptions> {
  const { fleetPrompt } = await import("../commands/fleet.ts");
  return promptOf(session, fleetPrompt(wish), (prompt) => prompt);
}

async function promptOf(
  session: Session,
  result: PromptResult,
  withData: (prompt: string) => string,
): Promise<SendOptions> {
  const { prompt, displayPrompt, toolLimits, agents, gate } = result;
  const ask = gate && (await stopGate(session, gate));
  return {
    prompt: withData(prompt),
    displayPrompt,
    answering: {
      ...(toolLimits && { tools: toolLimits.available }),
      ...(agents && { agents }),
      ...(gate && ask && { gate: { name: gate.kind, ask } }),
    },
  };
}

async function stopGate(session: Session, gate: Gate): Promise<StopGate> {
  if (gate.kind === "research") {
    const { researchGate } = await import("../commands/research-gate.ts");
    return researchGate({ reportPath: gate.reportPath, reportExists: async () => existsSync(gate.reportPath) });
  }
  const { fleetGate } = await import("../commands/fleet-gate.ts");
  return fleetGate({
    readTodos: async () => session.settings.surroundings?.readTodos() ?? [],
    readDependencies: async () => session.settings.surroundings?.readDependencies() ?? [],
    runningAgents: () =>
      session.tasks?.list({ includeEnded: false }).filter(({ status }) => status !== "idle").length ?? 0,
  });
}

async function skillPrompt(
  session: Session,
  { name, request }: Extract<CommandResult, { kind: "skill" }>,
  withData: (prompt: string) => string,
): Promise<SendOptions> {
  const [{ loadSkill }, { findSkill }] = await Promise.all([
    import("../context/skills/load-skill.ts"),
    import("../context/skills/skill.ts"),
  ]);
  const skill = findSkill(name, session.settings.surroundings?.skills ?? []);
  if (!skill) throw new Error(`the skill ${name} was listed and is gone`);
  const { context, invoked, takesRequest } = await loadSkill(skill, "user-invoked", request);
  void session.say("skill.invoked", invoked);
  const prompt = withData(request === "" || takesRequest ? context : `${context}\n\n${request}`);
  return { prompt, displayPrompt: `/${name}${request === "" ? "" : ` ${request}`}` };
}

/** Sends it, and in autopilot goes on until the verdict. */
async function answer(
  session: Session,
  send: SendOptions,
  options: AutopilotOptions,
  accepted?: (messageId: string) => void,
): Promise<Submitted> {
  const heard: SessionEvent[] = [];
  let hasFlown = false;
  session.modes.flights++;
  const stopListening = session.subscribe((event) => {
    if (!event.type.endsWith("_delta")) heard.push(event);
  });
  try {
    const isOnAutopilot = (): boolean => session.modes.current === "autopilot";
    const beganOnAutopilot = isOnAutopilot();
    let outcome = await session.sendAndWait(send, accepted);
    if (!beganOnAutopilot && !isOnAutopilot()) {
      const { check } = options;
      if (check === undefined || outcome.kind !== "done") return { kind: "answered", outcome };
      return { kind: "answered", outcome, verdict: checkVerdict(check, await runCheck(session, check)) };
    }
    hasFlown = true;
    const judged = (): Stop =>
      stopOf(outcome, {
        events: heard.splice(0),
        pending: session.isPending,
        autopilot: isOnAutopilot(),
      });
    const verdict = await fly(judged(), options, {
      async send(message) {
        outcome = await session.sendAndWait({ prompt: message, displayPrompt: "", source: "autopilot" });
        return judged();
      },
      async nextStop() {
        await session.whenIdle();
        return judged();
      },
      runCheck: (command) => runCheck(session, command),
      checkFailed: (text) => session.warn("autopilot", text),
    });
    return { kind: "answered", outcome, verdict };
  } catch (error) {
    if (session.end.signal.aborted) return { kind: "answered", outcome: { kind: "aborted" } };
    throw error;
  } finally {
    stopListening();
    session.modes.flights--;
    // Rests on the way named autopilot; this one ends the work.
    if (hasFlown && !session.isWorking && !session.end.signal.aborted) void session.say("session.idle", {});
  }
}

async function runCheck({ settings }: Session, command: string): Promise<CheckResult> {
  const result = await settings.runCheck?.(command);
  if (!result) return { exitCode: null, output: "This session runs no commands." };
  return { ...result, output: settings.redactor?.text(result.output) ?? result.output };
}

/** Commands in the background, beside the agents. */
function commandsAtWork({ settings }: Session): readonly TaskEntry[] {
  const shells = settings.ports.shells?.list() ?? [];
  return shells.map(({ shellId, command, state, exitCode, mode }) => ({
    id: shellId,
    agentType: mode === "detached" ? "shell, detached" : "shell",
    description: command,
    status: exitCode === undefined ? state : `${state} with code ${exitCode}`,
    mode: "background",
    elapsedMs: 0,
    toolCalls: 0,
    tokens: 0,
  }));
}

function schedulesOf(schedules: ScheduleRegistry | undefined): Pick<CommandContext, "schedules"> {
  if (!schedules) return {};
  return {
    schedules: {
      add: (request) => schedules.add(request),
      list: () => schedules.list(),
      stop: (id) => schedules.stop(id),
    },
  };
}

function contextPort(session: Session): Pick<CommandContext, "context"> {
  const { context } = session;
  if (!context) return {};
  return {
    context: {
      async compact(focus) {
        const end = await context.compact({ ...(focus !== "" && { focus }), trigger: "manual" });
        if (!end.success) throw new TroupeError("failed", end.error);
        return `${plural(end.messagesRemoved, "message")} became a summary (checkpoint ${end.checkpointNumber}).`;
      },
      async report() {
        const { contextText } = await import("../session/context-report.ts");
        return contextText(await context.report());
      },
    },
  };
}

function modelsPort({ settings: { modelSeat: seat } }: Session): Pick<CommandContext, "models"> {
  if (!seat) return {};
  return {
    models: {
      current: () => modelName(seat.current),
      list: async () => (await seat.list()).filter(({ usable }) => usable).map(({ id }) => id),
      async select(name) {
        await seat.select(name, { source: "model_command" });
        return modelName(seat.current);
      },
    },
  };
}

function contextOf(session: Session): CommandContext {
  const { tasks, budget, settings } = session;
  const { surroundings } = settings;
  return {
    mode: session.modes.current,
    filesFolder: surroundings?.filesFolder ?? "",
    now: () => Date.now(),
    ...(surroundings && {
      skills: () =>
        surroundings.skills
          .filter(({ enabled, userInvocable }) => enabled && userInvocable)
          .map(({ name, description }) => ({
            name,
            description,
            commandName: name.toLowerCase().replace(/\s+/g, "-"),
          })),
      servers: () => surroundings.servers(),
      ...(surroundings.agents && { agents: surroundings.agents }),
      ...schedulesOf(surroundings.schedules?.()),
    }),
    ...(tasks && {
      tasks: {
        list: (): readonly TaskEntry[] => [...tasks.list(), ...commandsAtWork(session)],
        async show(id) {
          const { task, turns, error } = await tasks.report(id);
          const said = turns.map(({ response }) => response).join("\n\n");
          return [`${task.id} (${task.agentType}): ${task.status}`, said, error ?? ""].filter(Boolean).join("\n\n");
        },
        async stop(id) {
          await tasks.cancel(id);
        },
        async promote(id) {
          await tasks.promote(id);
        },
      },
    }),
    usage: () => {
      const { calls, usage, costUsd, durationMs } = budget.session;
      return { turns: calls, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens, costUsd, durationMs };
    },
    permissions: {
      describe: () => [
        ...session.settings.grants.session.map((approval) => `approved for this session: ${JSON.stringify(approval)}`),
        ...session.settings.grants.location.map((approval) => `approved for this place: ${JSON.stringify(approval)}`),
      ],
      async reset() {
        const count = session.settings.grants.session.length;
        session.settings.grants.resetSession();
        return count;
      },
    },
    ...modelsPort(session),
    ...contextPort(session),
    ...historyPort(session),
    rename: (name) => session.say("troupe.session_named", { name }),
  };
}
