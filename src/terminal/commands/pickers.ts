/** Lists to choose from: models, agents, sessions, points to rewind to. */
import { defined } from "../../lib/defined.ts";
import { plural } from "../../lib/text.ts";
import { holdersOf, type SessionOwner } from "../find-session.ts";
import type { Host } from "../host.ts";
import { type Choice, Picker } from "../overlays/picker.ts";
import { safeLine } from "../screen/safe.ts";
import { themeNames } from "../screen/style.ts";
import { tokensText } from "../transcript/block-lines.ts";

interface ModelEntry {
  readonly id: string;
  readonly name: string;
  /** US dollars per million tokens. */
  readonly price?: { readonly input: number; readonly output: number };
  readonly capabilities?: { readonly limits?: { readonly max_context_window_tokens?: number } };
}

export async function openModels(app: Host): Promise<void> {
  const { list } = await app.call<{ list: readonly ModelEntry[] }>("session.model.list");
  const { model: current, reasoningEffort } = app.view.session;
  // The session may name its model without the provider.
  const named = list.filter(({ id }) => id.endsWith(`/${current}`));
  const inUse = list.some(({ id }) => id === current) ? current : named.length === 1 ? named[0]?.id : undefined;
  const choices = list.map(({ id, name, price, capabilities }) => {
    const window = capabilities?.limits?.max_context_window_tokens;
    const facts = [
      id === inUse && `in use${reasoningEffort === undefined ? "" : `, effort ${reasoningEffort}`}`,
      !id.endsWith(name) && name,
      window && `${tokensText(window)} tokens`,
      price && (price.input + price.output === 0 ? "free" : `$${price.input} in, $${price.output} out per million`),
    ];
    return { value: id, label: id, detail: facts.filter((fact) => fact).join(" · ") };
  });
  const isInUse = ({ value }: { value: string }): boolean => value === inUse;
  const sorted = [...choices.filter(isInUse), ...choices.filter((choice) => !isInUse(choice))];
  pick(app, "Model", sorted, async (modelId) => {
    if (modelId === "understudy") await app.call("session.model.switchTo", { modelId });
    else chooseEffort(app, modelId);
  });
}

const EFFORTS = ["low", "medium", "high", "xhigh"] as const;

/** Models differ in what they take; one that does not know the effort says so at the next prompt. */
function chooseEffort(app: Host, modelId: string): void {
  const usual = { value: "", label: "usual", detail: "what the model does by itself" };
  const choices = [usual, ...EFFORTS.map((effort) => ({ value: effort, label: effort, detail: "" }))];
  pick(app, `Effort of ${safeLine(modelId)}`, choices, async (effort) => {
    await app.call("session.model.switchTo", { modelId, ...(effort !== "" && { reasoningEffort: effort }) });
  });
}

export async function openAgents(app: Host): Promise<void> {
  const { agents } = await app.call<{ agents: readonly { name: string; description: string }[] }>(
    "session.agent.list",
    {
      includeBuiltInAgents: true,
    },
  );
  const choices = agents.map(({ name, description }) => ({ value: name, label: name, detail: description }));
  const none = { value: "", label: "default", detail: "the usual agent of a session" };
  pick(app, "Agent that leads", [none, ...choices], async (name) => {
    if (name === "") await app.call("session.agent.deselect");
    else await app.call("session.agent.select", { name });
    app.hint(name === "" ? "the default agent leads" : `${name} leads`);
  });
}

/** Sessions that are open elsewhere come first: opening one joins it there. */
export async function openSessions(app: Host): Promise<void> {
  const { client } = app;
  if (!client) return;
  const sessions = (await client.listSessions()).filter(({ sessionId }) => sessionId !== app.session?.id);
  const asked = sessions.slice(0, MAX_ASKED).map(({ sessionId }) => sessionId);
  const { ownPid, holders } = await holdersOf(client, asked);
  const states = new Map(holders.map(({ sessionId, holder }) => [sessionId, stateText(holder, ownPid)]));
  const choices = sessions.map(({ sessionId, name, summary, modifiedTime, context }) => {
    const state = states.get(sessionId) ?? "";
    const folder = context?.cwd === app.options.cwd ? "here" : context?.cwd;
    return {
      value: sessionId,
      label: safeLine(name ?? summary ?? "(nothing said)").slice(0, 60),
      detail: [state, localTime(modifiedTime), folder, sessionId.slice(0, 8)].filter((fact) => fact).join(" · "),
      isOpen: state === OPEN,
    };
  });
  const sorted = [...choices.filter(({ isOpen }) => isOpen), ...choices.filter(({ isOpen }) => !isOpen)];
  if (sorted.length === 0) return app.hint("there is no other session");
  pick(app, "Session to open", sorted, (sessionId) => app.switchTo(sessionId));
}

/** `2026-11-18 17:03`, by the clock of the user. */
function localTime(timestamp: string): string {
  const time = new Date(timestamp);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}`;
}

const MAX_ASKED = 1_000;
const OPEN = "open elsewhere";

function stateText(holder: SessionOwner, ownPid: number): string {
  if (holder.kind === "died") return "died";
  return holder.kind === "process" && holder.pid !== ownPid ? OPEN : "";
}

interface RewindPoint {
  readonly eventId: string;
  readonly userMessage: string;
  readonly timestamp: string;
  readonly canRestoreFiles: boolean;
  readonly fileCount: number;
}

/** `/rewind redo` takes the last rewind back. */
export async function openRewind(app: Host, args = ""): Promise<void> {
  if (args === "redo") return redo(app);
  const { points } = await app.call<{ points: readonly RewindPoint[] }>("session.history.listRewindPoints");
  const choices = [...points].reverse().map((point) => ({
    value: point,
    label: safeLine(point.userMessage).slice(0, 60),
    detail: `${localTime(point.timestamp).slice(11)} · ${plural(point.fileCount, "file")} changed since`,
  }));
  if (choices.length === 0) return app.hint("there is no message to go back to");
  pick(app, "Rewind to before this message", choices, (point) => rewindHow(app, point));
}

async function redo(app: Host): Promise<void> {
  const { restoredFiles = [] } = await app.call<{ restoredFiles?: readonly string[] }>("session.history.restoreRewind");
  app.commit([app.style.yellow(`the rewind was taken back${fileText(restoredFiles)}`)]);
}

const fileText = (files: readonly string[]): string =>
  files.length === 0 ? "" : `; ${plural(files.length, "file")}: ${safeLine(files.join(", ")).slice(0, 300)}`;

interface RewindFile {
  readonly path: string;
  readonly changeType: string;
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

/** Conversation alone, or with the files; every file that would change is listed. */
async function rewindHow(app: Host, point: RewindPoint): Promise<void> {
  const { files, skippedFiles = [] } = await app.call<{
    files: readonly RewindFile[];
    skippedFiles?: readonly string[];
  }>("session.history.previewRewind", { eventId: point.eventId });
  const conversation = { value: "conversation", label: "conversation", detail: "files stay as they are" };
  const both = {
    value: "conversation-and-files",
    label: "conversation and files",
    detail: `brings back ${plural(files.length, "file")}`,
  };
  const choices = files.length > 0 && point.canRestoreFiles ? [conversation, both] : [conversation];
  const notes = [
    ...files.map(({ path, changeType, linesAdded, linesRemoved }) =>
      safeLine(`${changeType.padEnd(9)} ${path}  +${linesAdded} −${linesRemoved}`),
    ),
    ...skippedFiles.map((path) => safeLine(`stays     ${path}  changed by others since`)),
  ];
  const title = `Rewind to before: ${safeLine(point.userMessage).slice(0, 60)}`;
  const rewind = async (mode: string): Promise<void> => {
    const end = await app.call<{ restoredFiles?: readonly string[]; skippedFiles?: readonly unknown[] }>(
      "session.history.rewind",
      { eventId: point.eventId, mode },
    );
    app.editor.set(point.userMessage);
    const skipped = end.skippedFiles?.length ?? 0;
    app.commit([
      app.style.yellow(`rewound; the message is back in the prompt${fileText(end.restoredFiles ?? [])}`),
      ...(skipped > 0 ? [app.style.yellow(`  ${plural(skipped, "file")} changed by others since: not restored`)] : []),
      app.style.dim("  /rewind redo undoes the rewind"),
    ]);
  };
  pick(app, title, choices, rewind, notes.length > 0 ? ["Changed since by this session:", ...notes] : []);
}

/**
 * Makes a second session from this conversation and opens it; the first one stays as it is. The events before `toEventId` are
 * copied, or all.
 */
export async function forkSession(app: Host, toEventId?: string): Promise<void> {
  const { client, session } = app;
  if (!client || !session) return;
  const params = { sessionId: session.id, ...defined({ toEventId }) };
  const { sessionId } = (await client.request("sessions.fork", params)) as { sessionId: string };
  const before = session.id.slice(0, 8);
  await app.switchTo(sessionId);
  app.commit([app.style.dim(`this is a copy; the first session is ${before} (/resume)`)]);
}

export function openThemes(app: Host): void {
  const about = { default: "the colours of your terminal", contrast: "nothing dimmed", plain: "no colours" };
  const choices = themeNames.map((name) => ({ value: name, label: name, detail: about[name] }));
  pick(app, "Colours", choices, async (theme) => {
    app.setTheme(theme);
    await app.prefer({ theme });
  });
}

function pick<T>(
  app: Host,
  title: string,
  choices: readonly Choice<T>[],
  run: (value: T) => Promise<void>,
  notes: readonly string[] = [],
): void {
  const onChoose = (value: T): void => {
    run(value).catch((error: unknown) => app.fail(error));
  };
  app.openOverlay(new Picker({ title, choices, style: app.style, onChoose, notes }));
}
