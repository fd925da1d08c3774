/** Recognises questions whose form shows which word is the name, however common the word is. */
import { CONCEPTS } from "./intent-words.ts";
import type { Term } from "./terms.ts";

const NAME = "[`\"'“«]?(?<name>[@$]?[\\p{L}_][\\p{L}\\p{M}\\p{N}_$.:-]{0,99})(?:\\(\\))?[`\"'”»]?";
const KIND =
  "(?:function|class|method|variable|constant|type|interface|module|struct|enum|trait|symbol|identifier|field|property)";
const KIND_ELSEWHERE =
  "(?:funktion|klasse|methode|variable|konstante|typ|modul|función|clase|método|constante|tipo|módulo|fonction|classe|méthode|type|module|interface)";
const STATE_ELSEWHERE =
  "(?:definiert|deklariert|implementiert|verwendet|benutzt|aufgerufen|definid[oa]|declarad[oa]|usad[oa]|définie?|déclarée?|utilisée?)";
const STATE = "(?:defined|declared|implemented|located|used|called|imported|referenced|mentioned|created)";
const END = "\\s*[?.!]*\\s*$";

const FORMS: readonly RegExp[] = [
  `^\\s*(?:and |so |please )?where(?:'s| is| was)\\s+(?:(?:the|a|an|my|our)\\s+)?(?:${KIND}\\s+)?${NAME}(?:\\s+${KIND})?(?:\\s+(?:being\\s+)?${STATE})?${END}`,
  `^\\s*(?:and )?who\\s+(?:uses|calls|imports|references)\\s+(?:the\\s+)?(?:${KIND}\\s+)?${NAME}(?:\\s+${KIND})?${END}`,
  `\\b(?:definitions?|declarations?|usages?|uses|callers?|references|occurrences|implementations?|mentions)\\s+(?:of|to)\\s+(?:the\\s+)?(?:${KIND}\\s+)?${NAME}(?:\\s+${KIND})?${END}`,
  `^[\\s¿]*(?:wo (?:ist|wird|wurde)|dónde está|où est)\\s+(?:${STATE_ELSEWHERE}\\s+)?(?:(?:die|der|das|la|el|le)\\s+)?(?:${KIND_ELSEWHERE}\\s+)?${NAME}(?:\\s+${STATE_ELSEWHERE})?${END}`,
  `^[\\s¿]*(?:wer (?:ruft|nutzt|verwendet|benutzt)|quién (?:llama(?: a)?|usa|utiliza)|qui (?:appelle|utilise))\\s+(?:(?:die|der|das|la|el|le)\\s+)?(?:${KIND_ELSEWHERE}\\s+)?${NAME}(?:\\s+auf)?${END}`,
].map((form) => new RegExp(form, "iu"));

const NO_NAMES =
  /^(?:it|its|this|that|these|those|they|them|he|she|there|here|everything|something|anything|what|which|the|a|an|code|bug|error|problem|issue)$/i;

/** Returns the requested word, or `undefined` if the question has another form. */
export function subjectOf(prompt: string): Term | undefined {
  for (const form of FORMS) {
    const name = form.exec(prompt)?.groups?.name?.replace(/[.:-]+$/, "");
    if (name === undefined || name === "" || NO_NAMES.test(name)) continue;
    // A word with a different name in code is not a name.
    if (!CONCEPTS.some(([pattern]) => pattern.test(name))) return { text: name, kind: "name" };
  }
  return undefined;
}

/** True for a name that looks like a word or an acronym: its case may vary, and other names may be meant. */
export function isPlainName(term: Term): boolean {
  return term.kind === "name" && /^(?:\p{Ll}+|\p{Lu}{2,})$/u.test(term.text);
}
