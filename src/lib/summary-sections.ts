const SUMMARY_SECTIONS = [
  "overview",
  "history",
  "work_done",
  "technical_details",
  "important_files",
  "next_steps",
  "checkpoint_title",
] as const;
export type SummarySection = (typeof SUMMARY_SECTIONS)[number];

/** The sections of a conversation summary, in order. */
export const summarySections: readonly SummarySection[] = SUMMARY_SECTIONS;

/** Returns the sections of a summary. A truncated text has a part of its last one. */
export function sectionsOf(text: string): Partial<Record<SummarySection, string>> {
  const found: Partial<Record<SummarySection, string>> = {};
  for (const name of SUMMARY_SECTIONS) {
    const start = text.indexOf(`<${name}>`);
    if (start === -1) continue;
    const rest = text.slice(start + name.length + 2);
    const end = rest.search(new RegExp(`</${name}>|<(?:${SUMMARY_SECTIONS.join("|")})>`));
    const content = (end === -1 ? rest : rest.slice(0, end)).trim();
    if (content !== "") found[name] = content;
  }
  return found;
}
