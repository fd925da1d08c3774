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

/** Of the summary of a conversation, in their order. */
export const summarySections: readonly SummarySection[] = SUMMARY_SECTIONS;

/** The sections of a summary. A text that broke off has what there is of its last one. */
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
