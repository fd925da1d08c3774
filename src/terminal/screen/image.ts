/** Images for terminals that can show them: the protocols of kitty and iTerm2. Other terminals get none of it. */

export type ImageProtocol = "kitty" | "iterm";

const ROWS = 12;
const CHUNK = 4_096;

/** Undefined where it is not certain that the terminal shows images; tmux and screen pass none through. */
export function imageProtocol(environment: Readonly<Record<string, string | undefined>>): ImageProtocol | undefined {
  const { TERM = "", TERM_PROGRAM = "", KITTY_WINDOW_ID, TMUX, STY } = environment;
  if (TMUX || STY || /^(?:tmux|screen)/.test(TERM)) return undefined;
  if (KITTY_WINDOW_ID || TERM === "xterm-kitty" || /ghostty/i.test(TERM_PROGRAM)) return "kitty";
  return /^(?:iTerm\.app|WezTerm)$/.test(TERM_PROGRAM) ? "iterm" : undefined;
}

const isPng = (bytes: Buffer): boolean => bytes.subarray(0, 4).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47]));

/** The image as one committed line. Undefined for a format that the protocol does not take. */
export function imageLine(bytes: Buffer, protocol: ImageProtocol): string | undefined {
  const data = bytes.toString("base64");
  if (protocol === "iterm") return `\u001b]1337;File=inline=1;height=${ROWS};size=${bytes.length}:${data}\u0007`;
  if (!isPng(bytes)) return undefined;
  const pieces = data.match(new RegExp(`.{1,${CHUNK}}`, "g")) ?? [];
  return pieces
    .map((piece, index) => {
      const head = index === 0 ? `a=T,f=100,r=${ROWS},q=2,` : "";
      return `\u001b_G${head}m=${index < pieces.length - 1 ? 1 : 0};${piece}\u001b\\`;
    })
    .join("");
}
