/** Goes through a page with the Tab key alone. */
import type { Page } from "playwright-core";

export interface Walked {
  /** Elements that a person can use, and that Tab did not reach. */
  readonly missed: readonly string[];
  /** Elements that show nothing when they have the focus. */
  readonly unseen: readonly string[];
  readonly count: number;
}

const begin = `(() => {
  const usable = "a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary";
  window.walk = {
    wanted: [...document.querySelectorAll(usable)].filter((one) => one.checkVisibility() && !one.closest("dialog")),
    reached: new Set(),
    unseen: [],
    ends: 0,
  };
  document.activeElement?.blur();
  getSelection()?.setPosition(document.body, 0);
  return window.walk.wanted.length;
})()`;

/** Returns whether the walk is at its end. */
const look = `(() => {
  const one = document.activeElement;
  const { reached, unseen } = window.walk;
  // Behind the last element Tab leaves the page once, and comes back to the first.
  if (!one || one === document.body) return ++window.walk.ends > 2;
  if (reached.has(one)) return true;
  reached.add(one);
  const { outlineStyle, outlineWidth, opacity, visibility } = getComputedStyle(one);
  const { width, height } = one.getBoundingClientRect();
  const isSeen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 && opacity !== "0" && visibility === "visible";
  if (!isSeen || width < 2 || height < 2) unseen.push(one.outerHTML.slice(0, 120));
  return false;
})()`;

const end = `({
  missed: window.walk.wanted.filter((one) => one.isConnected && !window.walk.reached.has(one)).map((one) => one.outerHTML.slice(0, 120)),
  unseen: window.walk.unseen,
  count: window.walk.reached.size,
})`;

const MAX_MORE = 40;

export async function walkByTab(page: Page): Promise<Walked> {
  const wanted = await page.evaluate<number>(begin);
  for (let step = 0; step < wanted + MAX_MORE; step++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate<boolean>(look)) break;
  }
  return page.evaluate<Walked>(end);
}
