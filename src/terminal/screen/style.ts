/** Colours and weights. ANSI colours only, so that the terminal's own palette decides; NO_COLOR turns all of it off. */
import { DIM, type Span, styled } from "../../lib/markdown-spans.ts";

type Paint = (text: string) => string;

export interface Style {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
  readonly reverse: Paint;
  /** Text with the emphasis of Markdown. */
  spans(spans: readonly Span[]): string;
}

export const themeNames = ["default", "contrast", "plain"] as const;
export type ThemeName = (typeof themeNames)[number];

const plain: Paint = (text) => text;
const sgr =
  (on: number, off: number): Paint =>
  (text) =>
    text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`;

export const plainStyle: Style = {
  bold: plain,
  dim: plain,
  red: plain,
  green: plain,
  yellow: plain,
  cyan: plain,
  reverse: plain,
  spans: (spans) => spans.map(({ text }) => text).join(""),
};

const colours: Style = {
  bold: sgr(1, 22),
  dim: sgr(2, 22),
  red: sgr(31, 39),
  green: sgr(32, 39),
  yellow: sgr(33, 39),
  cyan: sgr(36, 39),
  reverse: sgr(7, 27),
  spans: (spans) => spans.map(({ text, styles }) => styled(text, styles)).join(""),
};

/** Secondary text is not dimmed, and success and failure differ by weight too. */
const contrast: Style = {
  ...colours,
  dim: plain,
  red: (text) => colours.bold(colours.red(text)),
  spans: (spans) =>
    colours.spans(spans.map(({ text, styles }) => ({ text, styles: styles.filter((one) => one !== DIM) }))),
};

export function styleOf(theme: ThemeName, environment: Readonly<Record<string, string | undefined>>): Style {
  if (environment.NO_COLOR || theme === "plain") return plainStyle;
  return theme === "contrast" ? contrast : colours;
}
