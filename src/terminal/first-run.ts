/** The first run: which model to use. The choice is tested with one real request before it is stored as the default. */
import type { Client } from "../sdk/client.ts";
import type { Host } from "./host.ts";
import { safeLine } from "./screen/safe.ts";

const MAX_CHOICES = 8;
export const UNDERSTUDY = "understudy";
const TEST_MS = 60_000;

/** For a session on the built-in model: how to get a real one. */
export const noModel = [
  "No model provider is configured: the built-in understudy answers, offline and without reasoning.",
  "Run `troupe login` in another window, or start Ollama or LM Studio; then /model.",
] as const;

export const isUnderstudy = (model: string | undefined): boolean => model === undefined || /understudy/.test(model);

interface ModelEntry {
  readonly id: string;
  readonly name: string;
}

interface Setting {
  readonly isDefault: boolean;
}

/**
 * Asks when nothing was ever said here, no model is set, and there is one to choose; with `isNeeded`, whenever there is one to
 * choose. The prompt works meanwhile.
 */
export async function chooseModel(app: Host, { isNeeded = false } = {}): Promise<void> {
  const { client } = app;
  if (!client || (!isNeeded && (await hasChosen(client)))) return;
  const { list } = await app.call<{ list: readonly ModelEntry[] }>("session.model.list");
  const real = ofEachProvider(list.filter(({ id }) => id !== UNDERSTUDY)).slice(0, MAX_CHOICES);
  if (real.length === 0) return;
  const choices = [...real.map(({ id }) => id), `${UNDERSTUDY} (built in, offline, does not reason)`];
  for (;;) {
    const index = await app.ask({
      title: "Which model should answer?",
      text: "Which model should answer? It is tested with one request and stored as your default; /model changes it.",
      choices,
    });
    const modelId = real[index]?.id ?? UNDERSTUDY;
    if (await isWorking(app, modelId)) {
      await client.request("user.settings.set", { settings: { model: modelId } });
      app.commit([app.style.green(`✓ ${safeLine(modelId)} answers; it is your default now.`)]);
      return;
    }
  }
}

async function hasChosen(client: Client): Promise<boolean> {
  if ((await client.listSessions()).length > 0) return true;
  const { settings } = (await client.request("user.settings.get")) as { settings: { readonly model?: Setting } };
  return settings.model?.isDefault === false;
}

/** The first model of each provider, then the second of each, so that no provider is left out of a short list. */
export function ofEachProvider<T extends Pick<ModelEntry, "id">>(models: readonly T[]): readonly T[] {
  const seen = new Map<string, number>();
  const placed = models.map((model) => {
    const provider = model.id.split("/", 1).join();
    const place = seen.get(provider) ?? 0;
    seen.set(provider, place + 1);
    return { model, place };
  });
  return placed.sort((one, other) => one.place - other.place).map(({ model }) => model);
}

/** Says why when it does not work. The built-in model needs no test. */
async function isWorking(app: Host, modelId: string): Promise<boolean> {
  const name = safeLine(modelId);
  const from = performance.now();
  const tell = (): void => app.hint(`testing ${name} · ${Math.round((performance.now() - from) / 1000)} s`);
  const telling = setInterval(tell, 1_000);
  try {
    tell();
    await app.call("session.model.switchTo", { modelId });
    if (modelId !== UNDERSTUDY) {
      const question = { question: "Answer with the word ready." };
      await inTime(app.call("session.ui.ephemeralQuery", question), `${name} did not answer within a minute.`);
    }
    app.hint(`${name} answers`);
    return true;
  } catch (error) {
    app.fail(error);
    app.hint(`${name} does not work: choose again`);
    return false;
  } finally {
    clearInterval(telling);
  }
}

/** Retries of a provider take longer than a first run should. */
async function inTime(work: Promise<unknown>, late: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(late)), TEST_MS);
  });
  await Promise.race([work, end]).finally(() => clearTimeout(timer));
}
