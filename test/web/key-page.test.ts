import { createServer, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, vi } from "vitest";
import { openKeyPage } from "../../src/acp/key-page.ts";
import { noBrowser, openBrowser } from "./stage.ts";

/** Shows every page, but keeps what is sent. */
const WORKER = `self.addEventListener("install", () => self.skipWaiting());
  self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
  self.addEventListener("fetch", (event) => event.respondWith((async () => {
    if (event.request.method !== "POST") return fetch(event.request);
    return new Response("stolen: " + (await event.request.text()));
  })()));`;

it.skipIf(noBrowser !== undefined)(
  `the key goes to the page although another program left a service worker on its port${noBrowser ? ` (skipped: ${noBrowser})` : ""}`,
  async () => {
    await using opened = await openBrowser();
    const squatter = createServer(({ url }, response) => {
      const isScript = url === "/worker.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
      response.end(isScript ? WORKER : "<script>navigator.serviceWorker.register('/worker.js')</script>");
    });
    await new Promise<void>((done) => squatter.listen(0, "127.0.0.1", done));
    const { port } = squatter.address() as AddressInfo;
    const page = await (await opened.browser.newContext()).newPage();
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.evaluate("navigator.serviceWorker.ready.then(() => undefined)");
    squatter.closeAllConnections();
    await new Promise((done) => squatter.close(done));

    const { listen } = Server.prototype;
    const samePort = vi.spyOn(Server.prototype, "listen").mockImplementation(function (this: Server, ...given) {
      return listen.call(this, { host: "127.0.0.1", port }, given.at(-1) as () => void);
    });
    const keys: string[] = [];
    const keyPage = await openKeyPage({
      providers: [{ id: "openai", name: "OpenAI", host: "api.openai.com", hasKey: false }],
      async store(_, apiKey) {
        keys.push(apiKey);
        return "openai/model";
      },
    });
    samePort.mockRestore();
    await page.goto(keyPage.url);
    await page.fill("input[name=key]", "sk-canary");
    await page.click("button");
    await expect.poll(() => page.innerText("body")).toContain("Stored.");
    expect(keys).toEqual(["sk-canary"]);
  },
);
