import { plural } from "../../lib/text.ts";
import { checkModel } from "../../model/check-model.ts";
import { type Check, type CheckContext, type Finding, reasonOf } from "./finding.ts";

type Row = Awaited<ReturnType<CheckContext["runtime"]["models"]["list"]>>[number];

/**
 * Says which providers are configured, and tests each with one short request. Requests that may cost money are sent only
 * with `--online` or with the user's consent; the built-in model and servers on this machine are always tested.
 */
export const providers: Check = async (context) => {
  const { models } = context.runtime;
  const rows = await models.list();
  const byProvider = new Map<string, Row[]>();
  for (const row of rows) byProvider.set(row.provider, [...(byProvider.get(row.provider) ?? []), row]);
  const ready = [...byProvider].flatMap(([name, own]) => {
    const row = cheapest(own.filter(({ usable }) => usable));
    return row === undefined ? [] : [{ name, row }];
  });
  const isFree = ({ row }: (typeof ready)[number]): boolean => row.price?.input === 0 && row.price.output === 0;
  const paid = ready.filter((one) => !isFree(one)).map(({ name }) => name);
  const isOnline = paid.length > 0 && (await context.isOnline(paid));
  const tested = await Promise.all(
    ready.map((one) => (isFree(one) || isOnline ? test(one.row, context) : untested(one.row))),
  );
  return [await checkChosenModel(context), ...tested, ...notReady(byProvider)];
};

function cheapest(rows: readonly Row[]): Row | undefined {
  const costOf = ({ price }: Row): number => (price === null ? Number.POSITIVE_INFINITY : price.input + price.output);
  return [...rows].sort((one, other) => costOf(one) - costOf(other))[0];
}

async function checkChosenModel({ runtime }: CheckContext): Promise<Finding> {
  const id = "models.chosen";
  try {
    const { label, providerId } = await runtime.models.resolve();
    if (providerId !== "understudy") return { id, status: "ok", summary: `model without --model: ${label}` };
    return {
      id,
      status: "warning",
      summary: "no model is configured: the built-in understudy answers, which does not reason",
      remedy: "Set the key of a provider, or TROUPE_BASE_URL and TROUPE_MODEL. See `troupe help models`.",
    };
  } catch (error) {
    return { id, status: "problem", summary: reasonOf(error), remedy: "See `troupe help models`." };
  }
}

async function test(row: Row, { runtime }: CheckContext): Promise<Finding> {
  const id = `models.${row.provider}`;
  const began = performance.now();
  try {
    await checkModel(await runtime.models.resolve(row.ref));
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    return { id, status: "ok", summary: `${row.ref}: answered in ${seconds} s` };
  } catch (error) {
    const hint = error instanceof Error && "hint" in error && typeof error.hint === "string" ? error.hint : undefined;
    const remedy = hint ?? "Check the key, the address and the network.";
    return { id, status: "problem", summary: `${row.ref}: ${reasonOf(error)}`, remedy };
  }
}

const untested = ({ provider, ref }: Row): Finding => ({
  id: `models.${provider}`,
  status: "ok",
  summary: `${ref}: configured, not tested (--online sends one short request)`,
});

/** Providers that nobody set up are one line; others say what they lack. */
function notReady(byProvider: ReadonlyMap<string, readonly Row[]>): Finding[] {
  const absent = [...byProvider].filter(([, rows]) => !rows.some(({ usable }) => usable));
  const isExpected = (reason: string): boolean =>
    /^(not configured|no server at |set |needs |name a model)/i.test(reason);
  const broken = absent.flatMap(([provider, [row]]): Finding[] => {
    if (row === undefined || isExpected(row.reason)) return [];
    return [
      {
        id: `models.${provider}`,
        status: "warning",
        summary: `${provider}: ${row.reason}`,
        remedy: "See: troupe models",
      },
    ];
  });
  const quiet = absent.length - broken.length;
  if (quiet === 0) return broken;
  const summary = `${plural(quiet, "provider")} not set up: \`troupe models\` says what each needs`;
  return [...broken, { id: "models.others", status: "ok", summary }];
}
