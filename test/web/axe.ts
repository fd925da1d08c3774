/** Runs axe-core in a page. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the rules that the page breaks, with the elements that do. */
export async function AxeBuilder(page: Page): Promise<readonly string[]> {
  // Through the debugger: the page's own security policy lets no such script in.
  const session = await page.context().newCDPSession(page);
  const run = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await run(`${source};0`);
  const found = (await run(
    "axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map((n) => n.html).join(' | ').slice(0, 400)))",
  )) as string[];
  await session.detach();
  return found;
}
