/** The texts of a Markdown file of ours, by their headings of second level. */
export function namedTexts(markdown: string): Map<string, string> {
  return new Map(
    markdown
      .split(/^## /m)
      .slice(1)
      .map((part) => {
        const [name = "", ...lines] = part.split("\n");
        return [name.trim(), lines.join("\n").trim()];
      }),
  );
}
