/**
 * The session's current model. It can change between messages, its capabilities can be overridden, and providers can be
 * added while the session is open. All parts of a session get the model here.
 */
import { defined } from "../../lib/defined.ts";
import { overridesOf } from "../../model/capabilities.ts";
import type { GivenProviders, ModelCapabilities } from "../../model/given-providers.ts";
import type { ModelRow } from "../../model/list-models.ts";
import type { ModelError } from "../../model/model-error.ts";
import type { ReasoningEffort, ReasoningSummary } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Emit } from "../../protocol/event.ts";
import { type ModelChange, type ModelSelection, modelName, modelReference } from "../../session/model-selection.ts";
import type { SessionModel } from "../../session/session-model.ts";
import type { SessionRequest } from "../session-request.ts";
import type { LastModel } from "./last-model.ts";
import type { Models, NamedModel, OwnModels } from "./models.ts";

interface Parts {
  /** The models of the process. */
  readonly models: Models;
  readonly own: OwnModels;
  readonly capabilities?: ModelCapabilities | undefined;
  readonly emit: Emit;
}

const GITHUB = "github";
const AUTO = "auto";
/** Cause of a change by the main agent. It is not stored, because the agent sets it again. */
export const BY_AGENT = "agent";
/** Rate limits that do not apply to other models; a limit for the whole account is not among them. */
const ELIGIBLE = /^(?:user_weekly|user_model|integration)_rate_limited$|^rate_limited$/;

/** Returns the parts of a request that concern access to models. */
export function ownModels(
  request: SessionRequest,
  { lastModel, identity }: { lastModel: LastModel | undefined; identity: OwnModels["identity"] },
): OwnModels {
  const {
    providers,
    fetch,
    socket: openSocket,
    githubSockets,
    name: model = lastModel?.reference,
  } = request.model ?? {};
  const { sharedBudget } = request.limits ?? {};
  return {
    ...providers,
    model,
    clientName: request.client?.name,
    fetch,
    openSocket,
    githubSockets,
    identity,
    sharedBudget,
  };
}

export class SelectedModel implements ModelSelection {
  readonly #parts: Parts;
  #own: OwnModels;
  #models: Models;
  #resolved = new Map<string, Promise<NamedModel>>();
  /** The generation of the user's configuration that the resolved models come from. */
  #generation: number;
  #chosen: SessionModel | undefined;
  #capabilities: ModelCapabilities | undefined;
  #current: SessionModel | undefined;
  #effort: ReasoningEffort | undefined;
  #summary: ReasoningSummary | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#own = parts.own;
    this.#models = parts.models.forSession(parts.own);
    this.#generation = parts.models.generation();
    this.#capabilities = parts.capabilities;
  }

  /** Sets the initial model, without an event. */
  begin(
    model: SessionModel,
    { effort, summary }: { effort?: ReasoningEffort | undefined; summary?: ReasoningSummary | undefined },
  ) {
    this.#chosen = model;
    this.#current = undefined;
    this.#effort = effort;
    this.#summary = summary;
  }

  get current(): SessionModel {
    if (!this.#chosen) throw new Error("The session has no model yet.");
    this.#current ??= withAbilities(this.#chosen, this.#capabilities);
    return this.#current;
  }

  get reasoningEffort(): ReasoningEffort | undefined {
    return this.#effort;
  }

  get reasoningSummary(): ReasoningSummary | undefined {
    return this.#summary;
  }

  /** Returns the same model for the same name until the providers change. */
  resolve(wanted?: string): Promise<NamedModel> {
    this.#forgetOld();
    const key = wanted ?? "";
    const known = this.#resolved.get(key) ?? this.#models.resolve(wanted);
    this.#resolved.set(key, known);
    known.then(
      ({ absent }) => absent && this.#resolved.delete(key),
      () => this.#resolved.delete(key),
    );
    return known;
  }

  async ready(): Promise<void> {
    const chosen = this.#chosen;
    if (!chosen || !(this.#forgetOld() || chosen.absent)) return;
    const wanted = chosen.absent ? chosen.absent.wanted : modelReference(chosen);
    const found = await this.resolve(wanted).catch(() => this.#withoutKey(chosen));
    if (!found || this.#chosen !== chosen) return;
    this.#chosen = found;
    this.#current = undefined;
  }

  /** A key that the user has removed is not used again. Other problems of the configuration leave the model as it is. */
  async #withoutKey(chosen: SessionModel): Promise<SessionModel | undefined> {
    const { providerId } = chosen;
    if (!(await this.#models.lacksKey(providerId).catch(() => false))) return undefined;
    const wanted = chosen.absent ? chosen.absent.wanted : modelReference(chosen);
    const { keyless } = await import("../../model/given-providers.ts");
    return { ...chosen, provider: keyless(providerId), absent: { why: `${providerId} has no key`, wanted } };
  }

  /** Forgets models with keys that the user has replaced since. Returns whether there were any. */
  #forgetOld(): boolean {
    const now = this.#parts.models.generation();
    const isOld = now !== this.#generation;
    if (isOld) this.#resolved = new Map();
    this.#generation = now;
    return isOld;
  }

  list(): Promise<readonly ModelRow[]> {
    return this.#models.list();
  }

  hasProvider(id: string): Promise<boolean> {
    return this.#models.hasProvider(id);
  }

  async select(name: string, change: ModelChange = {}): Promise<void> {
    const before = this.#chosen && { model: modelName(this.current), effort: this.#effort, summary: this.#summary };
    this.#chosen = await this.resolve(name);
    this.#apply(change);
    const { cause, source } = change;
    await this.#parts.emit("session.model_change", {
      newModel: modelName(this.current),
      ...defined({
        previousModel: before?.model,
        previousReasoningEffort: before?.effort,
        previousReasoningSummary: before?.summary,
        reasoningEffort: this.#effort,
        reasoningSummary: this.#summary,
        cause,
        source,
      }),
    });
    if (cause !== BY_AGENT) await this.#keep();
  }

  /**
   * Returns GitHub's automatic model after a rate limit that does not apply to the whole account; otherwise undefined.
   */
  insteadOf({ code = "" }: ModelError): string | undefined {
    const { providerId } = this.current;
    const isEligible = providerId === GITHUB && modelName(this.current) !== AUTO && ELIGIBLE.test(code);
    return isEligible ? AUTO : undefined;
  }

  async change(change: ModelChange): Promise<void> {
    const effort = this.#effort;
    this.#apply(change);
    if (effort === this.#effort) return;
    await this.#parts.emit("session.model_change", {
      newModel: modelName(this.current),
      previousModel: modelName(this.current),
      ...defined({ previousReasoningEffort: effort, reasoningEffort: this.#effort, source: change.source }),
    });
    await this.#keep();
  }

  /** Stores the full reference, so that a resumed session gets the same model: a name alone can be ambiguous. */
  async #keep(): Promise<void> {
    await this.#parts.emit("troupe.model_chosen", {
      reference: modelReference(this.current),
      ...defined({ reasoningEffort: this.#effort, reasoningSummary: this.#summary }),
    });
  }

  async add(given: GivenProviders): Promise<readonly ModelRow[]> {
    if (this.#own.provider)
      throw new TroupeError("usage", "The session has one provider for everything; none can be added.");
    const replaced = new Set(given.providers?.map(({ name }) => name));
    const ids = new Set(given.models?.map(({ provider, id }) => `${provider}/${id}`));
    await this.#use({
      ...this.#own,
      providers: [...(this.#own.providers ?? []).filter(({ name }) => !replaced.has(name)), ...(given.providers ?? [])],
      models: [
        ...(this.#own.models ?? []).filter(({ provider, id }) => !ids.has(`${provider}/${id}`)),
        ...(given.models ?? []),
      ],
      getToken: given.getToken ?? this.#own.getToken,
    });
    return (await this.list()).filter(({ ref }) => ids.has(ref));
  }

  async use(own: OwnModels): Promise<void> {
    await this.#use({ ...this.#own, ...own });
  }

  /** Replaces the providers. Throws and changes nothing if any of them is invalid. */
  async #use(own: OwnModels): Promise<void> {
    const models = this.#parts.models.forSession(own);
    await models.hasProvider("");
    this.#own = own;
    this.#models = models;
    this.#resolved = new Map();
  }

  #apply({ reasoningEffort, reasoningSummary, capabilities }: ModelChange): void {
    if (reasoningEffort !== undefined) this.#effort = reasoningEffort ?? undefined;
    if (reasoningSummary !== undefined) this.#summary = reasoningSummary;
    if (capabilities !== undefined) this.#capabilities = capabilities;
    this.#current = undefined;
  }
}

/** Applies overrides of the provider's statements about a model. */
function withAbilities(model: SessionModel, capabilities: ModelCapabilities | undefined): SessionModel {
  return capabilities ? { ...model, ...overridesOf(capabilities) } : model;
}
