/** Formats facts for users. Each fact stays on its own line, whatever it contains. */
import type { HistoryEntry } from "../../context/memory/fold.ts";
import { type Fact, isCurrent } from "../../context/memory/memory.ts";
import { clip, plural, sanitiseLine } from "../../lib/text.ts";

const DAY_MS = 86_400_000;
const MAX_LINE = 160;

export function factList(facts: readonly Fact[], now: number): string {
  if (facts.length === 0) return "Nothing is remembered here.\n";
  const width = Math.max(...facts.map(({ id }) => id.length));
  const rows = facts.map((fact) => {
    const about = [state(fact, now).padEnd(9), fact.scope.padEnd(10), fact.author.padEnd(6), age(fact.createdAt, now)];
    const counts = `${plural(fact.uses, "use")}, +${fact.votes.up} -${fact.votes.down}`;
    const words = clip(oneLine(`${fact.subject}: ${fact.fact}`), MAX_LINE);
    return `${fact.id.padEnd(width)}  ${about.join("  ")}  ${counts}\n${" ".repeat(width)}  ${words}`;
  });
  const proposals = facts.filter((fact) => state(fact, now) === "proposed").length;
  const hint =
    proposals === 0
      ? ""
      : `\n${plural(proposals, "proposal")}: no session is told until you accept: troupe memory accept <id>\n`;
  return `${rows.join("\n")}\n${hint}`;
}

export function factDetails(
  fact: Fact,
  history: readonly HistoryEntry[],
  options: { label: string; now: number },
): string {
  const rows: [string, string | undefined][] = [
    ["id", fact.id],
    ["subject", fact.subject],
    ["fact", fact.fact],
    ["citations", fact.citations],
    ["reason", fact.reason],
    ["status", state(fact, options.now)],
    ["scope", `${fact.scope} (${options.label})`],
    ["author", fact.author],
    ["source", [fact.source.kind, fact.source.detail].filter(Boolean).join(" ")],
    ["created", `${fact.createdAt} (${ago(fact.createdAt, options.now)})`],
    ["expires", fact.expiresAt],
    ["supersedes", fact.supersedes],
    ["used", `${plural(fact.uses, "time")}${fact.lastUsedAt ? `, last ${fact.lastUsedAt}` : ""}`],
    ["votes", `+${fact.votes.up} -${fact.votes.down}`],
  ];
  const votes = fact.votes.by.map(
    ({ direction, voter, reason, at }) => `  ${at.slice(0, 10)}  ${direction}  ${voter}: ${reason}`,
  );
  const changes = history.map(({ at, by, action, transaction, note }) =>
    [`  ${at.slice(0, 19).replace("T", " ")}  ${action.padEnd(11)}  ${by}  (${transaction})`, note]
      .filter(Boolean)
      .join("  "),
  );
  const lines = [
    ...rows.flatMap(([name, value]) => (value ? [`${name.padEnd(11)} ${value}`] : [])),
    ...(votes.length > 0 ? ["votes by", ...votes] : []),
    "history",
    ...changes,
  ];
  return `${lines.map(oneLine).join("\n")}\n`;
}

function state(fact: Fact, now: number): string {
  return fact.status !== "retracted" && !isCurrent(fact, now) ? "expired" : fact.status;
}

function age(since: string, now: number): string {
  const days = Math.max(0, Math.floor((now - Date.parse(since)) / DAY_MS));
  return days === 0 ? "today" : plural(days, "day");
}

function ago(since: string, now: number): string {
  const text = age(since, now);
  return text === "today" ? text : `${text} ago`;
}

const oneLine = (text: string): string => sanitiseLine(text);
