import { defined } from "../lib/defined.ts";
import type { EventOf, SessionEvent } from "../protocol/event.ts";
import type { ResumeConfig, SessionConfig } from "./config.ts";
import { invokeHook } from "./hooks.ts";
import { transformsOf } from "./to-wire.ts";

export interface RequestOptions {
  /** Cancels the request: it rejects, and the server stops what it does for it. */
  readonly signal?: AbortSignal;
}

export type Request = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  options?: RequestOptions,
) => Promise<unknown>;

/** Handler of a surface that answers requests by their ids, wherever they are shown. Its promise stays open. */
export const answeredById = (): Promise<never> => new Promise(() => undefined);

/**
 * Answers a session's requests to this program: tool calls, permissions, forms and commands (sent as events that any
 * client may answer), and requests to this client alone. An error that a handler throws is sent as the answer.
 */
export class Answers {
  readonly #sessionId: string;
  readonly #config: SessionConfig & ResumeConfig;
  readonly #request: Request;
  readonly #transforms;
  /**
   * Descriptions of pending permission requests that this client leaves to others, since it has no handler. By request
   * id.
   */
  readonly #unanswered = new Map<string, string>();

  constructor(parts: { sessionId: string; config: SessionConfig & ResumeConfig; request: Request }) {
    this.#sessionId = parts.sessionId;
    this.#config = parts.config;
    this.#request = parts.request;
    this.#transforms = transformsOf(parts.config.systemMessage);
  }

  /** The first pending permission request that this client leaves to others. */
  get unanswered(): string | undefined {
    return [...this.#unanswered.values()][0];
  }

  /**
   * Handles every event. Never rejects and never waits. Answers that could not be delivered stay pending in the server.
   */
  onEvent(event: SessionEvent): void {
    const answer = this.#answerTo(event);
    answer?.catch(() => undefined); // the session or the connection is gone: the answer cannot be sent
  }

  #answerTo(event: SessionEvent): Promise<unknown> | undefined {
    switch (event.type) {
      case "external_tool.requested":
        return this.#runTool(event);
      case "permission.requested":
        return this.#decide(event);
      case "permission.completed":
        this.#unanswered.delete(event.data.requestId);
        return undefined;
      case "elicitation.requested":
        return this.#fillForm(event);
      case "command.execute":
        return this.#runCommand(event);
      default:
        return undefined;
    }
  }

  async #runTool({ data }: EventOf<"external_tool.requested">): Promise<void> {
    const tool = this.#config.tools?.find(({ name }) => name === data.toolName);
    if (!tool) return; // it belongs to another client
    const { requestId, toolCallId, toolName } = data;
    const invocation = { sessionId: this.#sessionId, toolCallId, toolName, arguments: data.arguments };
    const answer = await tool.run(data.arguments, invocation).then(
      (result) => ({ result }),
      (error: unknown) => ({ error: messageOf(error) }),
    );
    await this.#request("session.tools.handlePendingToolCall", { requestId, ...answer });
  }

  async #decide({ data, agentId }: EventOf<"permission.requested">): Promise<void> {
    const { onPermissionRequest: handler } = this.#config;
    if (data.resolvedByHook) return;
    if (!handler) {
      this.#unanswered.set(data.requestId, data.permissionRequest.kind);
      return;
    }
    const invocation = { sessionId: this.#sessionId, ...defined({ agentId }) };
    const decide = async () => handler(data.permissionRequest, invocation);
    const result = await decide().catch(() => ({ kind: "user-not-available" as const }));
    if (result.kind === "no-result") return;
    await this.#request("session.permissions.handlePendingPermissionRequest", { requestId: data.requestId, result });
  }

  async #fillForm({ data }: EventOf<"elicitation.requested">): Promise<void> {
    const { onElicitationRequest: handler } = this.#config;
    if (!handler) return;
    const { requestId, ...request } = data;
    const fill = async () => handler(request, { sessionId: this.#sessionId });
    const result = await fill().catch(() => ({ action: "cancel" as const }));
    await this.#request("session.ui.handlePendingElicitation", { requestId, result });
  }

  async #runCommand({ data }: EventOf<"command.execute">): Promise<void> {
    const { requestId, commandName, command, args } = data;
    const handler = this.#config.commands?.find(({ name }) => name === commandName)?.handler;
    if (!handler) return; // it belongs to another client
    const run = async () => handler({ command, args, sessionId: this.#sessionId });
    const failed = await run().then(
      () => ({}),
      (error: unknown) => ({ error: messageOf(error) }),
    );
    await this.#request("session.commands.handlePendingCommand", { requestId, ...failed });
  }

  /** Handlers of requests to this client alone, by method. */
  readonly requests: Readonly<Record<string, (params: never) => Promise<unknown>>> = {
    "hooks.invoke": async (call: { hookType: string; input: Readonly<Record<string, unknown>> }) => {
      const output = await invokeHook(this.#config.hooks, { ...call, sessionId: this.#sessionId });
      return output === undefined ? {} : { output };
    },
    "userInput.request": async (request: never) =>
      required(this.#config.onUserInputRequest, "user input")(request, { sessionId: this.#sessionId }),
    "exitPlanMode.request": async (request: never) =>
      required(this.#config.onExitPlanModeRequest, "leaving plan mode")(request, { sessionId: this.#sessionId }),
    "autoModeSwitch.request": async (request: never) => ({
      response: await required(this.#config.onAutoModeSwitchRequest, "switching models")(request, {
        sessionId: this.#sessionId,
      }),
    }),
    "textBuffer.read": async ({ path }: { path: string }) => ({ text: await this.#config.textBuffers?.read(path) }),
    "textBuffer.write": async ({ path, text }: { path: string; text: string }) => ({
      written: (await this.#config.textBuffers?.write(path, text)) ?? false,
    }),
    "systemMessage.transform": (request: { sections: Readonly<Record<string, { content: string }>> }) =>
      this.#transform(request.sections),
    "providerToken.getToken": async ({ providerName }: { providerName: string }) => ({
      token: await this.#token(providerName),
    }),
  };

  async #transform(sections: Readonly<Record<string, { content: string }>>): Promise<unknown> {
    const changed = Object.entries(sections).map(async ([id, { content }]) => {
      const transform = this.#transforms.get(id);
      return [id, { content: transform ? await transform(content) : content }] as const;
    });
    return { sections: Object.fromEntries(await Promise.all(changed)) };
  }

  async #token(providerName: string): Promise<string> {
    const { provider, providers } = this.#config;
    const owner = providers?.find(({ name }) => name === providerName) ?? provider;
    return required(
      owner?.bearerTokenProvider,
      `a token for ${providerName}`,
    )({
      providerName,
      sessionId: this.#sessionId,
    });
  }
}

function required<T>(handler: T | undefined, what: string): T {
  if (handler === undefined) throw new Error(`This client has no handler for ${what}.`);
  return handler;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
