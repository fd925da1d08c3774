/** Splits the commands of a `sh` block into words, with the parser that permissions use. */
import { forEachChild, parse, type SyntaxNode } from "unbash";

/** Returns every simple command as its words, without quotes, assignments and redirections. */
export async function commandsIn(script: string): Promise<string[][]> {
  const parsed = parse(script);
  if (parsed.errors !== undefined && parsed.errors.length > 0) throw new Error(parsed.errors[0]?.message);
  const found: string[][] = [];
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Command" && node.name !== undefined) {
      found.push([node.name, ...node.args].map((word) => (word.type === "Word" ? word.value : word.text)));
    }
    forEachChild(node, visit);
  };
  visit(parsed);
  return found;
}
