/** Display names of roles and states, by language. A new language is one entry; a missing key does not compile. */
const english = {
  "role.scout": "Scout",
  "role.review": "Review",
  "role.security_analyst": "Security Analyst",
  "status.at_work": "at work",
  "status.queued": "queued",
  "status.running": "running",
  "status.idle": "idle",
  "status.completed": "completed",
  "status.blocked": "blocked",
  "status.failed": "failed",
  "status.cancelled": "cancelled",
  worker: "worker",
  workers: "workers",
} as const;

type LabelKey = keyof typeof english;
export type Labels = Readonly<Record<LabelKey, string>>;

export const languages: Readonly<Record<"en" | "de" | "ru", Labels>> = {
  en: english,
  de: {
    "role.scout": "Erkundung",
    "role.review": "Prüfung",
    "role.security_analyst": "Sicherheitsanalyse",
    "status.at_work": "in Arbeit",
    "status.queued": "wartet",
    "status.running": "läuft",
    "status.idle": "bereit",
    "status.completed": "fertig",
    "status.blocked": "blockiert",
    "status.failed": "fehlgeschlagen",
    "status.cancelled": "abgebrochen",
    worker: "Worker",
    workers: "Worker",
  },
  ru: {
    "role.scout": "Разведка",
    "role.review": "Проверка",
    "role.security_analyst": "Анализ безопасности",
    "status.at_work": "в работе",
    "status.queued": "в очереди",
    "status.running": "выполняется",
    "status.idle": "ожидает",
    "status.completed": "готово",
    "status.blocked": "заблокировано",
    "status.failed": "ошибка",
    "status.cancelled": "отменено",
    worker: "исполнитель",
    workers: "исполнители",
  },
};

/** Returns the labels of `TROUPE_LANGUAGE` (`de`, `de_DE.UTF-8`), or English if the language is unknown. */
export function labelsFor(environment: Readonly<Record<string, string | undefined>>): Labels {
  const [, language = "en"] = /^([a-z]{2})(?![a-z])/i.exec(environment.TROUPE_LANGUAGE?.toLowerCase() ?? "") ?? [];
  return Object.hasOwn(languages, language) ? languages[language as keyof typeof languages] : english;
}

/** Returns the display name of a state, or the state itself if it has none. */
export function statusLabel(status: string, labels: Labels): string {
  const key = `status.${status}`;
  return Object.hasOwn(labels, key) ? labels[key as LabelKey] : status;
}

/** Returns a worker's display name: its translated role, or its title. The number stays. */
export function workerLabel(title: string, role: string, labels: Labels): string {
  const key = `role.${role}`;
  if (!Object.hasOwn(english, key)) return title;
  const own = english[key as LabelKey];
  const number = title.slice(own.length);
  return title.startsWith(own) && /^(?: \d+)?$/.test(number) ? `${labels[key as LabelKey]}${number}` : title;
}
