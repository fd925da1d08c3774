import { chmodSync, existsSync, readFileSync, statSync } from "node:fs";
import { delimiter } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { openBrowser } from "../../src/web/open-browser.ts";
import { noBrowser, openBrowser as startBrowser, webStage } from "./stage.ts";

const script = '#!/bin/sh\necho "$@" > "$OPENED.part"\nmv "$OPENED.part" "$OPENED"\n';

/** Opens the address with a program that notes its arguments. */
async function opened(address: string) {
  const folder = await tempFolder({ "bin/xdg-open": script, "bin/open": script });
  for (const name of ["bin/xdg-open", "bin/open"]) chmodSync(folder.at(name), 0o755);
  const PATH = `${folder.at("bin")}${delimiter}${process.env.PATH ?? ""}`;
  const environment = { PATH, OPENED: folder.at("opened") };
  const remove = await openBrowser(address, { home: folder.at("home"), disk: nodeDisk, environment });
  await expect.poll(() => existsSync(folder.at("opened"))).toBe(true);
  const args = readFileSync(folder.at("opened"), "utf8").trim();
  return { args, remove, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

describe.skipIf(process.platform === "win32")("opening the browser", () => {
  it("opening the browser gives it a private file, and no code in the arguments", async () => {
    const address = "http://127.0.0.1:4270/login?code=abc";
    await using open = await opened(address);
    expect(open.args).toMatch(/\/web\/open-[0-9a-f]+\.html$/);
    expect(open.args).not.toContain("code=");
    expect(statSync(open.args).mode & 0o077).toBe(0);
    expect(readFileSync(open.args, "utf8")).toContain(address);
    await open.remove();
    expect(existsSync(open.args)).toBe(false);
  });

  it.skipIf(noBrowser !== undefined)("a browser logs in from the private file", async () => {
    await using stage = await webStage();
    await using open = await opened(stage.web.address());
    await using browser = await startBrowser();
    const page = await browser.browser.newPage();
    page.setDefaultTimeout(100_000);
    await page.goto(pathToFileURL(open.args).href, { waitUntil: "commit" });
    await page.waitForSelector(".link-state.open");
    expect(page.url()).toBe(`${stage.origin}/#/`);
  });
});
