import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readable } from "../../src/tools/web/readable.ts";
import { processorTime, watchLoop } from "../support/work.ts";

const base = new URL("https://example.com/docs/start.html");
const textOf = async (html: string): Promise<string> => (await readable(html, base)).text;

describe("a page becomes text", () => {
  test("headings, paragraphs, emphasis, breaks", async () => {
    const html = `<!doctype html><html><head><title> The  Title </title></head><body>
      <h1>One</h1><p>First   line<br>second &amp; <b>bold</b>, <i>it</i>alic.</p><h3>Three</h3><div>a</div><div>b</div></body>`;
    expect(await readable(html, base)).toEqual({
      title: "The Title",
      text: "# One\n\nFirst line\nsecond & bold, italic.\n\n### Three\n\na\nb",
      isCut: false,
    });
  });

  test("lists, nested and numbered", async () => {
    const html = "<ul><li>a<li><p>b</p><ol><li>one</li><li>two</li></ol></li></ul><p>after</p>";
    expect(await textOf(html)).toBe("- a\n- b\n  1. one\n  2. two\n\nafter");
  });

  test("links in readable text show their full target, and omit targets that may not be fetched", async () => {
    expect(await textOf('See <a href="../api?x=1&amp;y=2">the <b>API</b></a>.')).toBe(
      "See [the API](https://example.com/api?x=1&y=2).",
    );
    expect(await textOf("<a href='//evil.example/a(b)'>text</a>")).toBe("[text](https://evil.example/a%28b%29)");
    expect(await textOf('<a href="javascript:alert(1)">x</a> <a href="#top">y</a> <a>z</a>')).toBe("x y z");
    expect(await textOf('<a href="/card"><h2>Card</h2><p>words</p></a><p>next</p>')).toBe(
      "[Card words](https://example.com/card)\n\nnext",
    );
  });

  test("code keeps its shape", async () => {
    expect(await textOf("<p>Run <code>npm i</code>:</p><pre><code>if (a &lt; b) {\n  go();\n}\n</code></pre>end")).toBe(
      "Run `npm i`:\n\n```\nif (a < b) {\n  go();\n}\n```\n\nend",
    );
    expect(await textOf("<pre>a ``` b</pre>")).toBe("````\na ``` b\n````");
  });

  test("tables and quotes become readable text", async () => {
    const html =
      "<table><tr><th>Name</th><th>Age</th></tr><tr><td>Ann</td><td>5</td></tr></table><table><tr><td><p>a</p><p>b</p></td><td>c</table><blockquote><p>said</p><p>twice</p></blockquote>x";
    expect(await textOf(html)).toBe("Name | Age\n--- | ---\nAnn | 5\n\na b | c\n\n> said\n\n> twice\n\nx");
  });

  test("HTML entities become characters in readable text", async () => {
    expect(
      await textOf("&lt;&#65;&#x42;&nbsp;&mdash;&eacute;&hellip;&euro;&unknown;&copy=1 &#0;&#x110000;&#150; AT&T"),
    ).toBe("<AB —é…€&unknown;&copy=1 \ufffd\ufffd– AT&T");
  });
});

test("readable text omits content that a reader would not see", async () => {
  const html = `a<script>if (1 < 2) { document.write("<p>evil</p>") }</script><style>p{}</style><!-- <b>no</b> -->
    <template><p>no</p></template><svg><text>no</text></svg><div hidden>no <div>deep</div> no</div>
    <span style="color:red; Display : none">no</span><p aria-hidden="true">no</p><span style="font-size:0">no</span>
    <noscript>b</noscript><p hidden>no<p>c</p><input type=hidden value=no><script src=x/>no</script>d`;
  expect((await textOf(html)).replaceAll(/\s+/g, " ")).toBe("a b c d");
});

describe("hostile pages", () => {
  const cases: Record<string, string> = {
    "open tags": "<div>",
    "closing tags": "</div>",
    "half tags": "<a",
    "unclosed quotes": '<a b="',
    "mixed quotes": `<a b="<c d='`,
    comments: "<!--",
    "bad comments": "<!",
    scripts: "<script>",
    "scripts that almost close": "<script></scrip",
    entities: "&amp",
    "numeric entities": "&#9999999999",
    lists: "<ul><li>",
    quotes: "<blockquote>",
    links: '<a href="x">y',
    tables: "<table><tr><td>",
    "spaces in tags": "<a      ",
    attributes: "<a x=\"1\" y='2' z hidden=",
    backticks: "<pre>```",
    "control characters": "\u0000\u001b[31m<\u0000",
    "hidden parts": "<p hidden>",
  };
  test.each(Object.entries(cases))("%s, by the megabyte, take no longer than others", async (_, unit) => {
    const html = unit.repeat(Math.ceil(1_000_000 / unit.length));
    const spent = processorTime();
    await readable(html, base);
    expect(spent()).toBeLessThan(3000);
  });

  test("hostile pages do not block the event loop", async () => {
    const longest = watchLoop();
    await readable('<p>some text <a href="x">link</a></p>'.repeat(150_000), base);
    expect(longest()).toBeLessThan(500);
  });

  test("the text has an end even if links blow it up", async () => {
    const long = new URL(`https://example.com/${"d/".repeat(400)}x`);
    const { text, isCut } = await readable('<a href="y">z</a>'.repeat(20_000), long);
    expect(isCut).toBe(true);
    expect(text.length).toBeLessThan(4_100_000);
  });

  test("no input breaks it, and no script gets through", async () => {
    const piece = fc.constantFrom(
      "<",
      ">",
      "</",
      "<p>",
      "<a href=",
      '"',
      "'",
      "=",
      "<script>",
      "</script>",
      "<!--",
      "-->",
      "&",
      "&#x",
      ";",
      "<li>",
      "<ul>",
      "</ul>",
      "<pre>",
      "</pre>",
      "<td>",
      "<tr>",
      "hidden",
      " ",
      "\n",
      "text",
      "<title>",
      "</title>",
      "\ud800",
      "<h1>",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 60 }), async (pieces) => {
        const html = `${pieces.join("")}<script>SECRET</script>`;
        const { text } = await readable(html, base);
        expect(typeof text).toBe("string");
        const opaque = /<(script|title)|<!--|["']|<pre|<\//.test(pieces.join("")) || /<\/?\w*$/.test(pieces.join(""));
        if (!opaque) expect(text).not.toContain("SECRET");
      }),
      { numRuns: process.env.TROUPE_SLOW ? 20_000 : 500 },
    );
  });
});
