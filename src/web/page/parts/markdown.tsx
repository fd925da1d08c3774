/**
 * Markdown as elements. The lexer gives tokens and the elements are made from those: there is no HTML string anywhere, so
 * text of others stays text. Links lead only to http and https, and show their whole target.
 */
import { Lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren, JSX } from "preact";
import { sanitise } from "../../../lib/text.ts";
import { Code } from "./code.tsx";
import { TableBox } from "./labels.tsx";

/** Beyond this length text is shown as it is: lexing it would take longer than a frame. */
const MAX_LEXED = 60_000;

export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const safe = sanitise(text);
  if (safe.length > MAX_LEXED) return <pre class="plain">{safe}</pre>;
  return <div class="md">{blocks(lexMarkdown(safe))}</div>;
}

function lexMarkdown(text: string): readonly Token[] {
  try {
    return Lexer.lex(text, { gfm: true });
  } catch {
    return [{ type: "text", raw: text, text }];
  }
}

const blocks = (tokens: readonly Token[] | undefined): ComponentChildren => tokens?.map((token) => block(token));

function block(token: Token): ComponentChildren {
  switch (token.type) {
    case "heading": {
      // Headings of texts are not headings of the page.
      return <p class={`h h${(token as Tokens.Heading).depth}`}>{inline(token.tokens)}</p>;
    }
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "text":
      return "tokens" in token && token.tokens ? <>{inline(token.tokens)} </> : token.text;
    case "code":
      return <Code text={token.text} language={(token as Tokens.Code).lang ?? ""} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens)}</blockquote>;
    case "list":
      return list(token as Tokens.List);
    case "table":
      return table(token as Tokens.Table);
    case "hr":
      return <hr />;
    case "space":
    case "def":
      return null;
    default:
      return <>{token.raw}</>;
  }
}

function list({ ordered, start, items }: Tokens.List): JSX.Element {
  const rows = items.map((item, index) => (
    <li key={index}>
      {item.task && <span class="box">{item.checked ? "☑ " : "☐ "}</span>}
      {blocks(item.tokens.filter(({ type }) => type !== "checkbox"))}
    </li>
  ));
  return ordered ? <ol start={typeof start === "number" ? start : 1}>{rows}</ol> : <ul>{rows}</ul>;
}

function table({ header, rows }: Tokens.Table): JSX.Element {
  return (
    <TableBox label="Table">
      <thead>
        <tr>
          {header.map((cell, index) => (
            <th key={index}>{inline(cell.tokens)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, line) => (
          <tr key={line}>
            {row.map((cell, index) => (
              <td key={index}>{inline(cell.tokens)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </TableBox>
  );
}

function inline(tokens: readonly Token[] | undefined): ComponentChildren {
  return tokens?.map((token) => span(token));
}

function span(token: Token): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <del>{inline(token.tokens)}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return link(token as Tokens.Link);
    case "image":
      // Images of texts are not loaded: the address would tell others that the text was read.
      return <code>{`image: ${(token as Tokens.Image).href}`}</code>;
    case "escape":
      return <>{token.text}</>;
    case "text":
      return "tokens" in token && token.tokens ? inline(token.tokens) : token.text;
    default:
      return <>{token.raw}</>;
  }
}

function link({ href, tokens, text }: Tokens.Link): ComponentChildren {
  const words = inline(tokens);
  if (!/^https?:\/\/[^\s]+$/i.test(href)) {
    return (
      <>
        {words} <code>{href}</code>
      </>
    );
  }
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {words}
      {text !== href && <span class="target"> ({href})</span>}
    </a>
  );
}
