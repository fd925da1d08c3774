/** Lists to choose from: models, agents, sessions, points to rewind to. */
import type { Host } from "../host.ts";
import { type Choice, Picker } from "../overlays/picker.ts";
import { safeLine } from "../screen/safe.ts";
import { themeNames } from "../screen/style.ts";
import { tokensText } from "../transcript/block-lines.ts";

interface ModelEntry {
  readonly id: string;
  readonly name: string;
  readonly capabilities?: { readonly limits?: { readonly max_context_window_tokens?: number } };
}

export async function openModels(app: Host): Promise<void> {
  const { list } = await app.call<{ list: readonly ModelEntry[] }>("session.model.list");
  const current = app.session?.view.session.model;
  const choices = list.map(({ id, name, capabilities }) => {
    const window = capabilities?.limits?.max_context_window_tokens;
    const facts = [
      id === current ? "in use" : "",
      name === id ? "" : name,
      window ? `${tokensText(window)} tokens` : "",
    ];
    return { value: id, label: id, detail: facts.filter((fact) => fact !== "").join(" · ") };
  });
  pick(app, "Model", choices, async (modelId) => {
    await app.call("session.model.switchTo", { modelId });
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

export async function openSessions(app: Host): Promise<void> {
  const sessions = (await app.client?.listSessions()) ?? [];
  const open = (await app.client?.request("sessions.checkInUse", {
    sessionIds: sessions.map((one) => one.sessionId),
  })) as { inUse: readonly string[] } | undefined;
  const choices = sessions
    .filter(({ sessionId }) => sessionId !== app.session?.id)
    .map(({ sessionId, name, summary, modifiedTime, context }) => ({
      value: sessionId,
      label: safeLine(name ?? summary ?? "(nothing said)").slice(0, 60),
      detail: [
        modifiedTime.slice(0, 16).replace("T", " "),
        context?.cwd === app.options.cwd ? "here" : context?.cwd,
        open?.inUse.includes(sessionId) ? "open elsewhere" : "",
        sessionId.slice(0, 8),
      ]
        .filter((fact) => fact)
        .join(" · "),
    }));
  pick(app, "Session to open", choices, (sessionId) => app.switchTo(sessionId));
}

interface RewindPoint {
  readonly eventId: string;
  readonly userMessage: string;
  readonly timestamp: string;
  readonly canRestoreFiles: boolean;
  readonly fileCount: number;
}

export async function openRewind(app: Host): Promise<void> {
  const { points } = await app.call<{ points: readonly RewindPoint[] }>("session.history.listRewindPoints");
  const choices = [...points].reverse().map((point) => ({
    value: point,
    label: safeLine(point.userMessage).slice(0, 60),
    detail: `${point.timestamp.slice(11, 16)} · ${point.fileCount} files changed since`,
  }));
  pick(app, "Rewind to before this message", choices, (point) => rewindHow(app, point));
}

/** Conversation alone, or with the files; the files that would change are named. */
async function rewindHow(app: Host, point: RewindPoint): Promise<void> {
  const preview = await app.call<{
    files: readonly { path: string; changeType: string; linesAdded: number; linesRemoved: number }[];
  }>("session.history.previewRewind", { eventId: point.eventId });
  const files = preview.files.map(({ path, linesAdded, linesRemoved }) => `${path} (+${linesAdded} −${linesRemoved})`);
  const conversation = { value: "conversation", label: "conversation", detail: "files stay as they are" };
  const both = {
    value: "conversation-and-files",
    label: "conversation and files",
    detail: `takes back: ${files.join(", ").slice(0, 400)}`,
  };
  const choices = files.length > 0 && point.canRestoreFiles ? [conversation, both] : [conversation];
  pick(app, `Rewind to before: ${safeLine(point.userMessage).slice(0, 60)}`, choices, async (mode) => {
    await app.call("session.history.rewind", { eventId: point.eventId, mode });
    app.editor.set(point.userMessage);
    app.commit([
      app.style.yellow("rewound; the message is back in the prompt. troupe rewind --restore takes it back."),
    ]);
  });
}

export function openThemes(app: Host): void {
  const about = { default: "the colours of your terminal", contrast: "nothing dimmed", plain: "no colours" };
  const choices = themeNames.map((name) => ({ value: name, label: name, detail: about[name] }));
  pick(app, "Colours", choices, async (theme) => {
    app.setTheme(theme);
    await app.prefer({ theme });
  });
}

function pick<T>(app: Host, title: string, choices: readonly Choice<T>[], run: (value: T) => Promise<void>): void {
  const onChoose = (value: T): void => {
    run(value).catch((error: unknown) => app.fail(error));
  };
  app.openOverlay(new Picker({ title, choices, style: app.style, onChoose }));
}
