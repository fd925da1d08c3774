import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { readAssets } from "../../src/web/assets.ts";
import { type PageHeaders, type WebStage, webStage } from "./stage.ts";

let stage: WebStage;
let login: PageHeaders;

beforeAll(async () => {
  stage = await webStage();
  login = await stage.login();
});
afterAll(() => stage[Symbol.asyncDispose]());

interface Shape {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
}

/** Sends exactly these headers: `fetch` would correct some of them. */
function send({
  method = "POST",
  path = "/rpc",
  headers = {},
  body = goodBody,
}: Shape): Promise<{ status: number; text: string }> {
  const own: Record<string, string | undefined> = {
    host: `127.0.0.1:${stage.web.port}`,
    origin: stage.origin,
    ...login,
    "content-type": "application/json",
    ...headers,
  };
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: stage.web.port, method, path, headers: given }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
        if (path.startsWith("/events")) response.destroy();
      });
      response.on("close", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject);
    sent.end(method === "GET" ? undefined : body);
  });
}

const goodBody = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "web.boot", params: {} });

describe("who may call", () => {
  it("the server answers a page that has logged in", async () => {
    const { status, text } = await send({});
    expect([status, JSON.parse(text).result.version]).toEqual([200, "0.0.0"]);
  });

  const refused: readonly (readonly [string, number, Shape])[] = [
    ["without a cookie", 401, { headers: { cookie: undefined } }],
    ["with the cookie alone", 401, { headers: { "x-troupe-token": undefined } }],
    ["with the cookie and a forged token", 401, { headers: { "x-troupe-token": "a.b" } }],
    ["with a forged cookie", 401, { headers: { cookie: "troupe-1=a.9999999999999.b" } }],
    ["for another host", 421, { headers: { host: "evil.example" } }],
    ["for a host that begins like ours", 421, { headers: { host: "127.0.0.1.evil.example" } }],
    ["for our host on another port", 421, { headers: { host: "127.0.0.1:1" } }],
    ["of a foreign origin", 403, { headers: { origin: "https://evil.example" } }],
    ["of the origin null", 403, { headers: { origin: "null" } }],
    ["of another loopback port", 403, { headers: { origin: "http://127.0.0.1:9" } }],
    ["for a worker of another program", 403, { headers: { "service-worker": "script" } }],
    ["without an origin", 403, { headers: { origin: undefined } }],
    ["that another site caused", 403, { headers: { "sec-fetch-site": "cross-site" } }],
    ["that another port of this machine caused", 403, { headers: { "sec-fetch-site": "same-site" } }],
    ["in the form that forms of other sites can send", 415, { headers: { "content-type": "text/plain" } }],
    ["as a form", 415, { headers: { "content-type": "application/x-www-form-urlencoded" } }],
    ["by GET", 405, { method: "GET" }],
    ["that is too large", 413, { body: `"${"x".repeat(1024 * 1024 + 10)}"` }],
  ];
  it.each(refused)("the server refuses a request %s with %i", async (_, status, shape) => {
    expect((await send(shape)).status).toBe(status);
  });

  it("the event stream is refused without a cookie or token, and to other sites with one", async () => {
    const stream = { method: "GET", path: "/events" } as const;
    expect((await send({ ...stream, headers: { origin: undefined, cookie: undefined } })).status).toBe(401);
    expect((await send({ ...stream, headers: { origin: undefined, "x-troupe-token": undefined } })).status).toBe(401);
    expect((await send({ ...stream, headers: { origin: "https://evil.example" } })).status).toBe(403);
    expect((await send({ ...stream, headers: { "sec-fetch-site": "cross-site" } })).status).toBe(403);
    expect((await send({ ...stream, headers: { origin: undefined } })).status).toBe(200);
  });

  it("the server never allows other origins to read an answer", async () => {
    const response = await fetch(`${stage.origin}/`);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    expect(response.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'none'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    );
  });
});

describe("logging in", () => {
  it("a login code works once", async () => {
    const address = stage.web.address();
    const first = await fetch(address, { redirect: "manual" });
    expect(first.status).toBe(303);
    expect(first.headers.get("location")).toMatch(/^\/#token=[\w.-]+$/);
    expect(first.headers.get("set-cookie")).toMatch(/; HttpOnly; SameSite=Strict/);
    expect(first.headers.get("clear-site-data")).toBe('"storage"');
    expect((await fetch(address, { redirect: "manual" })).status).toBe(401);
  });

  it.each(["", "wrong", "x".repeat(5_000)])("a login refuses the code %j", async (code) => {
    const response = await fetch(`${stage.origin}/login?code=${code}`, { redirect: "manual" });
    expect([401, 414]).toContain(response.status);
    expect(response.headers.get("set-cookie")).toBeNull();
  });

  it("a login refuses a script, and its code still works in a tab", async () => {
    const path = new URL(stage.web.address()).search;
    const get = { method: "GET", path: `/login${path}`, body: "" } as const;
    const from = (dest: string) => ({ origin: undefined, "sec-fetch-site": "same-origin", "sec-fetch-dest": dest });
    expect((await send({ ...get, headers: from("empty") })).status).toBe(403);
    expect((await send({ ...get, headers: from("document") })).status).toBe(303);
  });

  it("a login refuses a token for a cookie and a cookie for a token", async () => {
    const { cookie, "x-troupe-token": token } = login;
    const value = cookie.split("=")[1] ?? "";
    expect((await send({ headers: { "x-troupe-token": value } })).status).toBe(401);
    expect((await send({ headers: { cookie: cookie.replace(value, token) } })).status).toBe(401);
  });

  it("a file may lead a tab to the login, and other sites to nothing else", async () => {
    const led = {
      ...{ cookie: undefined, "x-troupe-token": undefined, origin: undefined },
      ...{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    };
    const path = stage.web.address().slice(stage.origin.length);
    const get = (at: string, headers: NonNullable<Shape["headers"]>) => send({ method: "GET", path: at, headers });
    expect((await get(path, led)).status).toBe(200);
    expect((await get("/", led)).status).toBe(403);
    expect((await get(path, { ...led, "sec-fetch-dest": "iframe" })).status).toBe(403);
    expect((await get(path, { ...led, "sec-fetch-mode": "no-cors" })).status).toBe(403);
    expect((await get(path, { ...led, host: "evil.example" })).status).toBe(421);
    // The code was not used by any of these.
    expect((await get(path, { ...led, "sec-fetch-site": "same-origin" })).status).toBe(303);
  });

  it("a login from before a restart on the same port is refused, and nothing is stored", async () => {
    await stage.restart();
    expect((await send({})).status).toBe(401);
    expect((await send({ method: "GET", path: "/events", headers: { origin: undefined } })).status).toBe(401);
    expect(existsSync(join(stage.home, "web"))).toBe(false);
    login = await stage.login();
    expect((await send({})).status).toBe(200);
  });
});

describe("requests", () => {
  const answer = async (body: string): Promise<{ result?: unknown; error?: { code: number; message: string } }> =>
    JSON.parse((await send({ body })).text);
  const code = async (body: string): Promise<number | undefined> => (await answer(body)).error?.code;

  it("an invalid request to the page's server gets an error of its kind", async () => {
    expect(await code("{")).toBe(-32700);
    expect(await code("[]")).toBe(-32700);
    expect(await code(`{"method":"web.boot","params":{"__proto__":{"x":1}}}`)).toBe(-32700);
    expect(await code(`{"method":"web.boot","params":{"a":${"[".repeat(100)}${"]".repeat(100)}}}`)).toBe(-32700);
  });

  it("a request to the page's server can call only listed methods", async () => {
    for (const method of ["runtime.shutdown", "session.shell.exec", "user.settings.set", "toString", "__proto__x"]) {
      expect(await code(JSON.stringify({ id: 1, method, params: { sessionId: "a" } }))).toBe(-32601);
    }
  });

  it("a path is not accepted as the id of a session", async () => {
    const { error } = await answer(
      JSON.stringify({ id: 1, method: "session.abort", params: { sessionId: "../../etc" } }),
    );
    expect(error?.message).toContain("no valid session");
    const stream = await send({
      method: "GET",
      path: "/events?session=../../../etc/passwd",
      headers: { origin: undefined },
    });
    expect(stream.text).not.toContain("root:");
  });
});

describe("files of the page", () => {
  it("the page's server serves only files of the build, whatever the address", async () => {
    for (const path of [
      "/../package.json",
      "/..%2fpackage.json",
      "/%2e%2e/package.json",
      "//etc/passwd",
      "/main.js/..",
    ]) {
      const { status, text } = await send({ method: "GET", path, headers: { origin: undefined } });
      expect([path, status === 404 || text.includes("<!doctype html>") || text === ""]).toEqual([path, true]);
      expect(text).not.toContain('"devDependencies"');
      expect(text).not.toContain("root:");
    }
  });

  it("the page's server omits links, folders and foreign files", async () => {
    await using folder = await tempFolder({
      "page/index.html": "x",
      "page/main.js": "y",
      "page/notes.txt": "n",
      "secret.js": "z",
    });
    symlinkSync(folder.at("secret.js"), folder.at("page/linked.js"));
    mkdirSync(folder.at("page/folder.js"));
    writeFileSync(folder.at("page/.hidden.js"), "h");
    expect([...(await readAssets(folder.at("page"))).keys()]).toEqual(["/", "/main.js"]);
  });

  it("the page's server says what to do when the page was not built", async () => {
    await expect(readAssets("/nowhere/at/all")).rejects.toThrow(/not in \/nowhere/);
  });
});
