import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { ClientSession } from "../sdk/session.ts";

export const modes = [
  { id: "interactive", name: "Ask", description: "Asks before it changes anything" },
  { id: "plan", name: "Plan", description: "Reads only, and changes nothing but the plan" },
  { id: "autopilot", name: "Autopilot", description: "Works until the task is done" },
] as const;

const efforts = ["low", "medium", "high", "xhigh", "max"];
/** Shown while no effort was chosen. */
const DEFAULT_EFFORT = "default";

/** The settings of a session that a user can change in the editor: mode, model, reasoning effort. */
export class ConfigOptions {
  readonly #session: ClientSession;
  #models: readonly { readonly id: string; readonly name: string }[] | undefined;
  /** The model that the user chose, and its name in the session. */
  #chosen: { readonly id: string; readonly calledBySession: string | undefined } | undefined;

  constructor(session: ClientSession) {
    this.#session = session;
  }

  /** `mode`: the mode that the session is about to have. */
  async read(mode?: string): Promise<SessionConfigOption[]> {
    const { rpc } = this.#session;
    const [current, { modelId, reasoningEffort }] = await Promise.all([rpc.mode.get(), rpc.model.getCurrent()]);
    return [modeOption(mode ?? current), ...(await this.#modelOption(modelId)), effortOption(reasoningEffort)];
  }

  /** Throws for a setting or a value that does not exist. */
  async set(id: string, value: unknown): Promise<void> {
    const { rpc } = this.#session;
    if (typeof value !== "string") throw refused(id, value);
    if (id === "mode") return this.setMode(value);
    if (id === "model") return this.#setModel(value);
    if (id !== "effort") throw new RpcError(rpcCodes.invalidParams, `There is no setting "${id}".`);
    if (value === DEFAULT_EFFORT && (await rpc.model.getCurrent()).reasoningEffort === undefined) return;
    if (!efforts.includes(value)) throw refused(id, value);
    await rpc.model.setReasoningEffort({ reasoningEffort: value });
  }

  /** Call when providers have changed: the models are listed again. */
  forgetModels(): void {
    this.#models = undefined;
    this.#chosen = undefined;
  }

  async setMode(value: string): Promise<void> {
    const mode = modes.find(({ id }) => id === value);
    if (!mode) throw refused("mode", value);
    await this.#session.rpc.mode.set({ mode: mode.id });
  }

  async #setModel(value: string): Promise<void> {
    const { rpc } = this.#session;
    const { list } = await rpc.model.list();
    this.#models = list;
    if (!list.some(({ id }) => id === value)) throw refused("model", value);
    await rpc.model.switchTo({ modelId: value });
    this.#chosen = { id: value, calledBySession: (await rpc.model.getCurrent()).modelId };
  }

  /** The current model is among the options, even if its provider does not list it. */
  async #modelOption(current: string | undefined): Promise<SessionConfigOption[]> {
    if (current === undefined) return [];
    this.#models ??= (await this.#session.rpc.model.list()).list;
    const byId = new Map(this.#models.map(({ id, name }) => [id, name]));
    const currentValue = this.#idOf(current) ?? current;
    if (!byId.has(currentValue)) byId.set(currentValue, currentValue);
    const options = [...byId].map(([id, name]) => ({ value: id, name }));
    return [{ type: "select", id: "model", name: "Model", category: "model", currentValue, options }];
  }

  /** A session may use a shorter name for its model than the list. */
  #idOf(current: string): string | undefined {
    if (this.#chosen?.calledBySession === current) return this.#chosen.id;
    const models = this.#models ?? [];
    return (models.find(({ id }) => id === current) ?? models.find(({ name }) => name === current))?.id;
  }
}

function modeOption(current: string): SessionConfigOption {
  const options = modes.map(({ id, name, description }) => ({ value: id, name, description }));
  return { type: "select", id: "mode", name: "Mode", category: "mode", currentValue: current, options };
}

function effortOption(current = DEFAULT_EFFORT): SessionConfigOption {
  const values = current === DEFAULT_EFFORT ? [DEFAULT_EFFORT, ...efforts] : efforts;
  const options = values.map((value) => ({ value, name: value }));
  return {
    type: "select",
    id: "effort",
    name: "Reasoning effort",
    category: "thought_level",
    currentValue: current,
    options,
  };
}

const refused = (id: string, value: unknown): RpcError =>
  new RpcError(rpcCodes.invalidParams, `${JSON.stringify(value)} is not a valid value of the setting "${id}".`);
