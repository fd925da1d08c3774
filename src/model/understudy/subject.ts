/** Questions whose form says which word is the name, however common a word it is. */
import type { Term } from "./terms.ts";

const NAME = "[`\"'“«]?(?<name>[@$]?[\\p{L}_][\\p{L}\\p{M}\\p{N}_$.:-]{0,99})(?:\\(\\))?[`\"'”»]?";
const KIND =
  "(?:function|class|method|variable|constant|type|interface|module|struct|enum|trait|symbol|identifier|field|property)";
const STATE = "(?:defined|declared|implemented|located|used|called|imported|referenced|mentioned|created)";
const END = "\\s*[?.!]*\\s*$";

const FORMS: readonly RegExp[] = [
  `^\\s*(?:and |so |please )?where(?:'s| is| was)\\s+(?:(?:the|a|an|my|our)\\s+)?(?:${KIND}\\s+)?${NAME}(?:\\s+${KIND})?(?:\\s+(?:being\\s+)?${STATE})?${END}`,
  `^\\s*(?:and )?who\\s+(?:uses|calls|imports|references)\\s+(?:the\\s+)?(?:${KIND}\\s+)?${NAME}(?:\\s+${KIND})?${END}`,
  `\\b(?:definitions?|declarations?|usages?|uses|callers?|references|occurrences|implementations?|mentions)\\s+(?:of|to)\\s+(?:the\\s+)?(?:${KIND}\\s+)?${NAME}(?:\\s+${KIND})?${END}`,
].map((form) => new RegExp(form, "iu"));

const NO_NAMES =
  /^(?:it|its|this|that|these|those|they|them|he|she|there|here|everything|something|anything|what|which|the|a|an|code|bug|error|problem|issue)$/i;

/** The one word that is asked for; undefined when the question has another form. */
export function subjectOf(prompt: string): Term | undefined {
  for (const form of FORMS) {
    const name = form.exec(prompt)?.groups?.name?.replace(/[.:-]+$/, "");
    if (name !== undefined && name !== "" && !NO_NAMES.test(name)) return { text: name, kind: "name" };
  }
  return undefined;
}

/** Written like any word or acronym: large and small letters may differ, and other names may be meant. */
export function isPlainName(term: Term): boolean {
  return term.kind === "name" && /^(?:\p{Ll}+|\p{Lu}{2,})$/u.test(term.text);
}
