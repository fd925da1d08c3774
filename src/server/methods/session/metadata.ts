/** The current state of a session: its directory, model, context usage and activity. */

import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { WorkingDirectory } from "../../../protocol/event.ts";
import { limitsData } from "../../../session/budget/credits.ts";
import type { Session } from "../../../session/session.ts";
import { folderOf } from "../../sessions/session-files.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";
import { workspaceOf } from "./workspaces.ts";

export const metadataMethods: MethodTable = {
  "session.metadata.snapshot": sessionMethod(nothing, (_, { session }) => snapshotOf(session)),
  "session.metadata.isProcessing": sessionMethod(nothing, (_, { session }) => ({
    processing: session.queue.isWorking,
  })),
  "session.metadata.activity": sessionMethod(nothing, (_, { session }) => ({
    abortable: session.queue.isWorking,
    hasActiveWork: session.queue.isWorking || session.queue.isPending,
  })),
  "session.metadata.contextInfo": sessionMethod(
    () => ({ promptTokenLimit: z.number(), outputTokenLimit: z.number(), selectedModel: z.string().optional() }),
    async ({ promptTokenLimit, outputTokenLimit }, { session }) => ({
      contextInfo: await contextInfo(session, { promptTokenLimit, outputTokenLimit }),
    }),
  ),
  "session.metadata.getContextAttribution": sessionMethod(nothing, async (_, { session }) => ({
    contextAttribution: await attribution(session),
  })),
  "session.metadata.getContextHeaviestMessages": sessionMethod(
    () => ({ limit: z.number().int().min(0).default(10) }),
    async ({ limit }, { session }) => {
      const report = await session.mainAgent.context?.report();
      const heaviest = (report?.largest ?? []).slice(0, limit);
      const messages = heaviest.map(({ label, tokens }, index) => ({
        id: `${index + 1}`,
        label,
        role: "tool",
        tokens,
      }));
      return { totalTokens: report?.totalTokens ?? 0, messages };
    },
  ),
  "session.metadata.setWorkingDirectory": sessionMethod(
    () => ({ workingDirectory: z.string().min(1) }),
    async ({ workingDirectory }, { hub, hosted, session }) => {
      const folder = resolve(session.workspace.cwd, workingDirectory);
      if (!(await isFolder(folder))) throw new TroupeError("usage", `${folder} is not a folder.`);
      if (hosted.isBusy) throw new TroupeError("failed", "The session is busy. Stop it before you change its folder.");
      await hub.reconfigure(hosted, { workingDirectory: folder });
      return { workingDirectory: hosted.session.workspace.cwd };
    },
  ),
  "session.metadata.recordContextChange": sessionMethod(
    () => ({ context: WorkingDirectory }),
    async ({ context }, { session }) => {
      // A client cannot change the session's working directory.
      const { cwd } = session.workspace;
      if ((await realOr(context.cwd)) === (await realOr(cwd)))
        await session.record.emit("session.context_changed", context);
      return {};
    },
  ),
  "session.metadata.recomputeContextTokens": sessionMethod(
    () => ({ modelId: z.string() }),
    async (_, { session }) => {
      const { system, conversation } = await tokensOf(session);
      return {
        totalTokens: system + conversation,
        messagesTokenCount: conversation,
        systemTokenCount: system,
      };
    },
  ),
};

const realOr = (path: string): Promise<string> => realpath(path).catch(() => path);
const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  );

function snapshotOf(session: Session): object {
  const { mainAgent, workspace } = session;
  const [first, last] = [session.events[0], session.events.at(-1)];
  const now = new Date().toISOString();
  return {
    sessionId: session.id,
    startTime: first?.timestamp ?? now,
    modifiedTime: last?.timestamp ?? now,
    isRemote: false,
    alreadyInUse: false,
    workspacePath: folderOf(session),
    ...defined({ initialName: session.record.name, summary: session.record.title }),
    workingDirectory: workspace.cwd,
    currentMode: mainAgent.modes.current,
    selectedModel: mainAgent.model.model,
    sessionLimits: limitsData(mainAgent.credits?.most).sessionLimits,
    workspace: workspaceOf(session),
  };
}

interface TokenParts {
  readonly system: number;
  readonly tools: number;
  readonly mcp: number;
  readonly conversation: number;
}

async function tokensOf(session: Session): Promise<TokenParts> {
  const parts = (await session.mainAgent.context?.report())?.parts ?? [];
  const sum = (...kinds: string[]): number =>
    parts.reduce((total, { kind, tokens }) => (kinds.includes(kind) ? total + tokens : total), 0);
  return {
    system: sum("system", "instructions"),
    tools: sum("tools", "mcp"),
    mcp: sum("mcp"),
    conversation: sum("summary", "user", "assistant", "results"),
  };
}

async function contextInfo(
  session: Session,
  limits: { promptTokenLimit: number; outputTokenLimit: number },
): Promise<object | null> {
  const report = await session.mainAgent.context?.report();
  if (!report) return null;
  const { system, tools, mcp, conversation } = await tokensOf(session);
  const { promptTokenLimit, outputTokenLimit } = limits;
  return {
    modelName: report.modelName,
    systemTokens: system,
    conversationTokens: conversation,
    toolDefinitionsTokens: tools,
    mcpToolsTokens: mcp,
    totalTokens: system + conversation + tools,
    promptTokenLimit,
    compactionThreshold: Math.floor((report.compactionThreshold / Math.max(1, report.tokenLimit)) * promptTokenLimit),
    limit: promptTokenLimit + outputTokenLimit,
    bufferTokens: report.bufferTokens,
  };
}

async function attribution(session: Session): Promise<object | null> {
  const report = await session.mainAgent.context?.report();
  if (!report) return null;
  const { tokenLimit, bufferTokens, compactionThreshold, modelName, freeTokens, totalTokens, parts } = report;
  const of = (...kinds: string[]): number =>
    parts.reduce((total, { kind, tokens }) => (kinds.includes(kind) ? total + tokens : total), 0);
  return {
    totalTokens,
    modelId: modelName,
    modelSource: "session",
    promptTokenLimit: tokenLimit,
    limit: tokenLimit,
    bufferTokens,
    compactionThreshold,
    categories: {
      systemPrompt: of("system"),
      customInstructions: of("instructions"),
      systemTools: of("tools"),
      mcpTools: of("mcp"),
      messages: of("summary", "user", "assistant", "results"),
      freeSpace: freeTokens,
      buffer: bufferTokens,
    },
    compactions: { count: session.events.filter((event) => isCompaction(event)).length },
    entries: parts.map(({ kind, label, tokens }, index) => ({ id: `${kind}-${index + 1}`, kind, label, tokens })),
  };
}

const isCompaction = (event: Session["events"][number]): boolean =>
  event.type === "session.compaction_complete" && event.data.success && event.agentId === undefined;
