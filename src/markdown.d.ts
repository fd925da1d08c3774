/** Prompts and tool descriptions are Markdown files next to the code, bundled as text. */
declare module "*.md" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: the shape both bundlers give a text file.
  export default text;
}
