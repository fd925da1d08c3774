/**
 * The interactive terminal of troupe: a client of the contract like every other surface. This is the first file to read.
 *
 * - `screen/` turns rows into bytes and knows nothing of agents; `input/` turns bytes into keys and text.
 * - `panels/` draws the live region from the view, `transcript/` the lines that are written once, `overlays/` what is
 *   shown on the alternate screen.
 * - `app.ts` holds the state and decides what a key means; `session.ts` talks to the session.
 * - `plain.ts` is the same for terminals that cannot move the cursor, and for screen readers.
 */

import type { ReadStream, WriteStream } from "node:tty";
import { defined } from "../lib/defined.ts";
import type { Client } from "../sdk/client.ts";
import { App } from "./app.ts";
import { findSession, openInServer } from "./find-session.ts";
import type { FirstFrame } from "./first-frame.ts";
import { chooseModel, isUnderstudy, noModel, UNDERSTUDY } from "./first-run.ts";
import { InputReader } from "./input/stdin.ts";
import { leaveSession, openOrJoin, type TrustQuestion, trustChoices, trustedName, trustTitle } from "./open-session.ts";
import { safeLine } from "./screen/safe.ts";
import type { Join, SessionChoice } from "./session-choice.ts";
import { Tty } from "./tty.ts";

export interface TerminalOptions {
  readonly input: ReadStream;
  readonly output: WriteStream;
  readonly first: FirstFrame;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly version: string;
  readonly sessionChoice: SessionChoice;
  /** A line for the user. */
  readonly notice?: string | undefined;
  /** A model was named for this run. */
  readonly isModelChosen?: boolean;
  /** The server belongs to another process: join the session that is open in it. */
  readonly attaches?: boolean;
  connect(): Promise<Client>;
  /** Connects to the server of another process of this user; undefined when it has none. */
  join?: Join | undefined;
  /** Things of the folder that would run if it were trusted; undefined when there is nothing to ask. */
  trust(): Promise<TrustQuestion | undefined>;
}

/** Runs until the user leaves. Restores the terminal in any case. Returns lines for the user, such as how to resume. */
export async function runTerminal(options: TerminalOptions): Promise<void> {
  const { input, output, first, environment, cwd, home, version } = options;
  const tty = new Tty({ input, output, first, environment });
  const app = new App({
    tty,
    environment,
    cwd,
    home,
    version,
    open: (target, sessionId) => openSession(target, options, { resumeId: sessionId, mayJoin: true }),
  });
  const reader = new InputReader((event) => app.input(event));
  const leave = (): void => app.exit();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, leave);
  const stopCapturing = captureWarnings((text) => app.commit([app.style.dim(safeLine(text))]));
  const resized = (): void => app.screen.resized();
  // After a defect the process ends at once: what waits to be written says why.
  const ending = (): void => app.screen.close([]);
  process.once("exit", ending);
  tty.listen((chunk) => reader.read(chunk), resized);
  app.screen.draw();
  let last: readonly string[] = [];
  try {
    const opening = start(app, options);
    await app.exited;
    app.isLeaving = true;
    await Promise.race([opening, new Promise((resolve) => setTimeout(resolve, LEAVE_MS).unref())]);
    const resumption = await leaveSession(app.session, app.client);
    if (resumption !== undefined) last = [app.style.dim(resumption)];
  } finally {
    stopCapturing();
    for (const signal of signals) process.off(signal, leave);
    await app.close();
    reader.close();
    output.off("resize", resized);
    app.screen.close(last);
    process.off("exit", ending);
    tty.close();
  }
}

/**
 * Text on stderr would be written into the live region: it becomes a committed line. Returns a function that ends this.
 */
function captureWarnings(say: (text: string) => void): () => void {
  const { stderr } = process;
  const write = stderr.write;
  const printed = process.listeners("warning");
  const warned = (warning: Error): void => say(`${warning.name}: ${warning.message}`);
  for (const listener of printed) process.off("warning", listener);
  process.on("warning", warned);
  stderr.write = (chunk: string | Uint8Array) => {
    for (const line of String(chunk).trimEnd().split("\n")) say(line);
    return true;
  };
  return () => {
    stderr.write = write;
    process.off("warning", warned);
    for (const listener of printed) process.on("warning", listener);
  };
}

/** A session that is still opening is not waited for longer than this. */
const LEAVE_MS = 1_000;

async function start(app: App, options: TerminalOptions): Promise<void> {
  await app.readPreferences();
  const { style } = app;
  app.commit([`${style.bold("troupe")} ${style.dim(`${options.version} · ${safeLine(options.cwd)}`)}`]);
  if (options.notice !== undefined) app.commit([style.yellow(`! ${safeLine(options.notice)}`)]);
  const [question] = await Promise.all([options.trust(), app.recoverDraft()]);
  if (question) await askForTrust(app, question);
  await tryToOpen(app, options);
}

/** A session that cannot be opened leaves the prompt usable: Enter tries again. */
async function tryToOpen(app: App, options: TerminalOptions): Promise<void> {
  try {
    await connectAndOpen(app, options);
  } catch (error) {
    app.fail(error);
    if (!app.session) app.retry = () => tryToOpen(app, options);
    app.screen.changed();
  }
}

async function connectAndOpen(app: App, options: TerminalOptions): Promise<void> {
  app.client ??= await options.connect();
  const { client } = app;
  const isJoining = options.attaches === true && options.sessionChoice.kind === "new";
  const sessionId = isJoining
    ? await openInServer(client)
    : await findSession(client, options.sessionChoice, options.cwd);
  const how: OpenSessionOptions = {
    resumeId: sessionId,
    newId: options.sessionChoice.kind === "id" ? options.sessionChoice.sessionId : undefined,
    mayJoin: options.sessionChoice.kind === "attach",
  };
  try {
    await openSession(app, options, how);
  } catch (error) {
    if (sessionId !== undefined) throw error;
    await openWithStandIn(app, options, { how, error });
    return;
  }
  sayModel(app);
  if (options.sessionChoice.kind === "new" && !options.isModelChosen && !isJoining) await chooseModel(app);
}

/**
 * A new session opens even when its model cannot be used: says why, and asks for another one. What was typed waits in the
 * prompt. An error that another model does not cure is the first one.
 */
async function openWithStandIn(
  app: App,
  options: TerminalOptions,
  { how, error }: { readonly how: OpenSessionOptions; readonly error: unknown },
): Promise<void> {
  await openSession(app, options, { ...how, model: UNDERSTUDY }).catch(() => {
    throw error;
  });
  app.fail(error);
  app.commit([app.style.dim("The built-in understudy answers until you choose a model: /model.")]);
  await chooseModel(app, { isNeeded: true });
}

async function askForTrust(app: App, question: TrustQuestion): Promise<void> {
  const items = question.items.map((item) => `${trustedName(item)}\n${item.shown}`);
  const names = question.items.length > 1 ? [...question.items.slice(0, 20).map(trustedName), ""] : [];
  const title = trustTitle(question);
  const text = `${title}:\n${names.join("\n")}\n${items.join("\n\n")}`;
  const choice = await app.ask({ title, text, choices: trustChoices });
  if (choice !== 0) return;
  await question.accept();
  const { folder } = question;
  app.commit([app.style.dim(`${safeLine(folder)} is trusted as it is now. To take it back: troupe trust remove`)]);
}

interface OpenSessionOptions {
  /** Undefined for a new session. */
  readonly resumeId: string | undefined;
  readonly newId?: string | undefined;
  /** A session that another process has open is joined there. */
  readonly mayJoin?: boolean;
  /** Stands in for the model that was asked for. */
  readonly model?: string;
}

async function openSession(
  app: App,
  options: TerminalOptions,
  { resumeId, newId, mayJoin, model }: OpenSessionOptions,
): Promise<void> {
  const { session: before, client: clientBefore } = app;
  const gone = (): void => void reopenHere(app, options, resumeId ?? "");
  if (!clientBefore) return;
  const { session, isJoined } = await openOrJoin({
    client: clientBefore,
    ...(mayJoin && { join: options.join }),
    ...(app.isJoined && { reconnect: () => options.connect() }),
    gone,
    cwd: app.options.cwd,
    resumeId,
    ...defined({ newId, model }),
    onChange: (changed) => {
      if (app.session === changed) app.viewChanged();
    },
  });
  const { client } = session;
  app.client = client;
  app.isJoined = isJoined;
  if (resumeId !== undefined) {
    const short = resumeId.slice(0, 8);
    app.commit([app.style.dim(isJoined ? `joined session ${short}, open in another terminal` : `session ${resumeId}`)]);
  }
  app.attach(session, { isResumed: resumeId !== undefined, sends: model === undefined });
  const { formerFolder } = session;
  if (formerFolder !== undefined && !isJoined) {
    const { cwd = "" } = session.view.session;
    app.commit([app.style.yellow(safeLine(`! it worked in ${formerFolder}; from here on it works in ${cwd}`))]);
  }
  await before?.close().catch(() => undefined);
  if (clientBefore !== client) await clientBefore.stop();
}

/** The process that had the joined session open is gone: resumes the session here. */
async function reopenHere(app: App, options: TerminalOptions, sessionId: string): Promise<void> {
  if (app.session?.id !== sessionId || !app.isJoined || app.isLeaving) return;
  app.commit([app.style.yellow("! the other terminal was closed; the session continues here")]);
  app.session = undefined;
  app.client = undefined;
  const attempt = async (): Promise<void> => {
    app.client = await options.connect();
    app.isJoined = false;
    await openSession(app, options, { resumeId: sessionId });
  };
  await attempt().catch((error: unknown) => {
    app.fail(error);
    app.retry = attempt;
  });
}

function sayModel(app: App): void {
  const [first, then] = noModel;
  if (isUnderstudy(app.view.session.model)) app.commit([first, app.style.dim(then)]);
}
