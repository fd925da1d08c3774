/** Decodes character references of HTML: the named ones that pages commonly use, and all numeric ones. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,8})|#[xX]([0-9a-fA-F]{1,7})|([a-zA-Z][a-zA-Z0-9]{1,31}));?/g, (whole, ...groups) => {
    const [decimal, hex, name] = groups as (string | undefined)[];
    if (name !== undefined) return namedCharacter(name, whole);
    return characterOf(decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number.parseInt(decimal, 10));
  });
}

function namedCharacter(name: string, whole: string): string {
  const found = NAMED.get(name);
  // Without a semicolon only the oldest names count; otherwise `&copy=1` in a link would become a sign.
  return found === undefined || !(whole.endsWith(";") || OLDEST.has(name)) ? whole : found;
}

function characterOf(code: number): string {
  if (code >= 0x80 && code <= 0x9f) return WINDOWS_1252[code - 0x80] ?? "\ufffd";
  const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : "\ufffd";
}

/** The characters that 128 to 159 stand for in practice. */
const WINDOWS_1252 = [..."€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ"];

const OLDEST = new Set(["amp", "lt", "gt", "quot", "nbsp"]);

const NAMED = new Map<string, string>([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
  ["nbsp", " "],
  ...pairs("ensp emsp thinsp", ["\u2002", "\u2003", "\u2009"]),
  ...pairs("iexcl cent pound curren yen brvbar sect uml copy ordf laquo not", [..."¡¢£¤¥¦§¨©ª«¬"]),
  ...pairs("reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo", [..."®¯°±²³´µ¶·¸¹º»"]),
  ...pairs("frac14 frac12 frac34 iquest times divide", [..."¼½¾¿×÷"]),
  ...pairs("Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml", [..."ÀÁÂÃÄÅÆÇÈÉÊË"]),
  ...pairs("Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml Oslash", [..."ÌÍÎÏÐÑÒÓÔÕÖØ"]),
  ...pairs("Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml", [..."ÙÚÛÜÝÞßàáâãä"]),
  ...pairs("aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth", [..."åæçèéêëìíîïð"]),
  ...pairs("ntilde ograve oacute ocirc otilde ouml oslash ugrave uacute ucirc uuml yacute", [..."ñòóôõöøùúûüý"]),
  ...pairs("thorn yuml OElig oelig Scaron scaron Yuml fnof", [..."þÿŒœŠšŸƒ"]),
  ...pairs("alpha beta gamma delta epsilon theta lambda mu pi sigma tau phi omega", [..."αβγδεθλμπστφω"]),
  ...pairs("Gamma Delta Theta Lambda Pi Sigma Phi Omega", [..."ΓΔΘΛΠΣΦΩ"]),
  ...pairs("ndash mdash lsquo rsquo sbquo ldquo rdquo bdquo dagger Dagger bull hellip", [..."–—‘’‚“”„†‡•…"]),
  ...pairs("permil prime Prime lsaquo rsaquo euro trade larr uarr rarr darr harr", [..."‰′″‹›€™←↑→↓↔"]),
  ...pairs("rArr hArr forall part exist empty isin sum minus radic infin cap cup int", [..."⇒⇔∀∂∃∅∈∑−√∞∩∪∫"]),
  ...pairs("asymp ne equiv le ge sub sup sube supe check cross star phone", [..."≈≠≡≤≥⊂⊃⊆⊇✓✗☆☎"]),
  ["lbrace", "{"],
  ["rbrace", "}"],
  ["lcub", "{"],
  ["rcub", "}"],
  ["lbrack", "["],
  ["rbrack", "]"],
  ["lsqb", "["],
  ["rsqb", "]"],
  ["lpar", "("],
  ["rpar", ")"],
  ["colon", ":"],
  ["semi", ";"],
  ["comma", ","],
  ["period", "."],
  ["sol", "/"],
  ["bsol", "\\"],
  ["num", "#"],
  ["excl", "!"],
  ["quest", "?"],
  ["equals", "="],
  ["plus", "+"],
  ["ast", "*"],
  ["lowbar", "_"],
  ["grave", "`"],
  ["vert", "|"],
  ["commat", "@"],
  ["dollar", "$"],
  ["percnt", "%"],
  ["NewLine", "\n"],
  ["Tab", "\t"],
  ["shy", ""],
  ["zwnj", ""],
  ["zwj", ""],
]);

function pairs(names: string, characters: readonly string[]): [string, string][] {
  return names.split(" ").map((name, index) => [name, characters[index] ?? ""]);
}
