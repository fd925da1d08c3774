/** Returns the texts of one of our Markdown files by their level-2 headings. */
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
