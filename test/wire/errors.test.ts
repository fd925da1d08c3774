import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import type { Stamp } from "../../src/lib/stamp.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { collect, errorOf, placeWith } from "./support.ts";

const openaiBody = (message: string, code: string | null, type = "invalid_request_error"): string =>
  JSON.stringify({ error: { message, type, param: null, code } });
const anthropicBody = (message: string, type: string): string =>
  JSON.stringify({ type: "error", error: { type, message }, request_id: "req_1" });

function refused(status: number, body: string, headers: Record<string, string> = {}, more?: Partial<Endpoint>) {
  return errorOf(openaiChat(placeWith(() => new Response(body, { status, headers }), more)));
}

describe("a refused request becomes an error with its kind", () => {
  test.each([
    [401, openaiBody("Incorrect API key", "invalid_api_key"), "authentication", "invalid_api_key", "Incorrect API key"],
    [403, anthropicBody("Not allowed", "permission_error"), "authentication", "permission_error", "Not allowed"],
    [402, '{"message":"Pay first"}', "quota", undefined, "Pay first"],
    [429, openaiBody("Quota", "insufficient_quota", "insufficient_quota"), "quota", "insufficient_quota", "Quota"],
    [
      400,
      anthropicBody("Your credit balance is too low to …", "invalid_request_error"),
      "quota",
      "invalid_request_error",
      "Your credit balance is too low to …",
    ],
    [400, openaiBody("Too long", "context_length_exceeded"), "context_length", "context_length_exceeded", "Too long"],
    [
      400,
      anthropicBody("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"),
      "context_length",
      "invalid_request_error",
      "prompt is too long: 210000 tokens > 200000 maximum",
    ],
    [400, openaiBody("Filtered", "content_filter"), "content_filter", "content_filter", "Filtered"],
    [
      400,
      openaiBody("Unknown parameter: stream_options", null),
      "request",
      "invalid_request_error",
      "Unknown parameter: stream_options",
    ],
    [400, openaiBody("Bad call", "tool_use_failed"), "protocol", "tool_use_failed", "Bad call"],
    [404, openaiBody("No such model", "model_not_found"), "request", "model_not_found", "No such model"],
    [
      413,
      anthropicBody("Request exceeds the maximum size", "request_too_large"),
      "request",
      "request_too_large",
      "Request exceeds the maximum size",
    ],
    [422, '{"detail":[{"loc":["body"],"msg":"field required"}]}', "request", undefined, "field required"],
    [
      422,
      '{"message":{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}',
      "request",
      undefined,
      "stream_options: Extra inputs are not permitted",
    ],
    [
      422,
      '{"detail":[{"msg":"one"},{"msg":"two"},{"msg":"three"},{"msg":"four"}]}',
      "request",
      undefined,
      "one; two; three",
    ],
    [400, '{"error":{"message":{"text":"odd"}}}', "request", undefined, '{"error":{"message":{"text":"odd"}}}'],
    [400, '{"success":false,"why":[1,2]}', "request", undefined, '{"success":false,"why":[1,2]}'],
    [400, '{"error":true,"reason":"No luck"}', "request", undefined, "No luck"],
    [400, '{"error":"bad_request","error_description":"No luck"}', "request", undefined, "No luck"],
    [
      400,
      '{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"error\\":{\\"message\\":\\"Bad\\"}}"}}}',
      "request",
      undefined,
      "Provider returned error: Bad",
    ],
    [429, openaiBody("Slow down", "rate_limit_exceeded", "tokens"), "rate_limit", "rate_limit_exceeded", "Slow down"],
    [
      429,
      '{"error":{"code":"user_weekly_rate_limited","message":"Weekly"}}',
      "rate_limit",
      "user_weekly_rate_limited",
      "Weekly",
    ],
    [529, anthropicBody("Overloaded", "overloaded_error"), "rate_limit", "overloaded_error", "Overloaded"],
    [408, "", "server", undefined, "no reason given"],
    [409, "conflict", "server", undefined, "conflict"],
    [499, "{}", "server", undefined, "no reason given"],
    [500, '{"error":"Proxy error"}', "server", undefined, "Proxy error"],
    [
      502,
      "<html><head><title>502 Bad Gateway</title></head></html>",
      "server",
      undefined,
      "a web page came back: 502 Bad Gateway",
    ],
    [
      503,
      '[{"error":{"code":503,"message":"Try later","status":"UNAVAILABLE"}}]',
      "server",
      "UNAVAILABLE",
      "Try later",
    ],
    [307, "", "request", undefined, "the server redirects to https://elsewhere.example"],
    [
      418,
      `{"error":{"message":"\\u001b[31mred\\u001b[0m ${"x".repeat(600)}"}}`,
      "request",
      undefined,
      `red ${"x".repeat(495)}…`,
    ],
    [400, "[".repeat(60_000), "request", undefined, `${"[".repeat(499)}…`],
  ] as const)("a refused request with status %i becomes an error: %s", async (status, body, kind, code, message) => {
    const error = await refused(status, body, { location: "https://elsewhere.example/path?key=1" });
    expect({ kind: error.kind, code: error.code, status: error.statusCode, message: error.message }).toEqual({
      kind,
      code,
      status,
      message: `test: ${message} (HTTP ${status})`,
    });
    expect(error.hint).toMatch(/\w/);
  });

  test("an error of a refused request has a hint that says what to do", async () => {
    const hint = async (status: number, more?: Partial<Endpoint>): Promise<unknown> =>
      (await refused(status, "", {}, more)).hint;
    expect(await hint(401, { keyHint: "Set TEST_KEY" })).toBe("Set TEST_KEY");
    expect(await hint(401)).toContain("API key of test");
    expect(await hint(404)).toContain("`troupe models`");
    expect(await hint(404)).toContain("http://127.0.0.1:9");
    expect(await hint(402)).toContain("billing");
    expect(await hint(413)).toContain("too large");
    expect((await refused(400, openaiBody("x", "context_length_exceeded"))).hint).toContain("compact");
  });

  test("an error of a refused request never shows the key, even if the server does", async () => {
    const error = await refused(401, openaiBody("Bad key secret-key-123 (Bearer secret-key-123)", "secret-key-123"));
    expect(JSON.stringify([error.message, error.code, error.hint, error.stack])).not.toContain("secret-key-123");
    expect(error.message).toBe("test: Bad key [key] (Bearer [key]) (HTTP 401)");
  });
});

describe("the provider's retry delay", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const stamp: Stamp = { ...systemStamp, now: () => now };
  test.each([
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1500],
    [{ "retry-after-ms": "soon", "retry-after": "9" }, 9000],
    [{ "retry-after": "1.5" }, 1500],
    [{ "retry-after": "0" }, undefined],
    [{ "retry-after": "-5" }, undefined],
    [{ "retry-after": "1000000000" }, 1e12],
    [{ "retry-after": "1e9" }, 1e12],
    [{ "retry-after": "1e999" }, undefined],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }, 30_000],
    [{ "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, undefined],
    [{ "retry-after": "later 7" }, undefined],
    [{ "retry-after": "0x10" }, undefined],
    [{ "retry-after": "" }, undefined],
    [{}, undefined],
  ])("the provider's retry delay %o is read as %s", async (headers, expected) => {
    expect((await refused(429, "", headers as Record<string, string>, { stamp })).retryAfterMs).toBe(expected);
  });

  test("the provider's header on whether to retry is kept", async () => {
    expect((await refused(429, "", { "x-should-retry": "false" })).retryable).toBe(false);
    expect((await refused(400, "", { "x-should-retry": "true" })).retryable).toBe(true);
    expect((await refused(429, "")).retryable).toBeUndefined();
  });
});

describe("without a connection", () => {
  test("an error without a connection names the server", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const endpoint: Endpoint = { id: "local", baseUrl: `http://127.0.0.1:${port}/v1`, headers: async () => ({}) };
    expect(await errorOf(openaiChat(endpoint))).toMatchObject({
      kind: "network",
      code: "ECONNREFUSED",
      message: `local: http://127.0.0.1:${port} refused the connection`,
      hint: `Is the server running at http://127.0.0.1:${port}?`,
    });
  });

  test("a connection that breaks in the middle is a network error", async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"choices":[{"delta":{"content":"Hal"}}]}\n\n', () =>
        setTimeout(() => response.destroy(), 20),
      );
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    const endpoint: Endpoint = { id: "local", baseUrl: `http://127.0.0.1:${port}`, headers: async () => ({}) };
    const events = await collect(openaiChat(endpoint));
    expect(events).toMatchObject([
      { type: "text", delta: "Hal" },
      { type: "end", stop: "error", error: { kind: "network" } },
    ]);
    server.closeAllConnections();
    server.close();
  });

  test.each([
    ["not an address", "the base URL is not an address"],
    ["https://user:pass-word@host", "the base URL must not contain a user name or password"],
  ])("the base URL %s is refused without repeating it", async (baseUrl, message) => {
    const error = await errorOf(openaiChat(placeWith(() => new Response(""), { baseUrl })));
    expect(error).toMatchObject({ kind: "request", message: `test: ${message}` });
  });

  test("an API key with a line break is refused without repeating it", async () => {
    const headers = async () => ({ authorization: "Bearer secret\nkey" });
    const error = await errorOf(openaiChat(placeWith(() => new Response(""), { headers })));
    expect(error).toMatchObject({
      kind: "authentication",
      message: 'test: the header "authorization" contains characters that HTTP does not allow',
    });
    expect(error.cause).toBeUndefined();
  });

  test("a failed sign-in is an authentication error", async () => {
    const headers = () => Promise.reject(new Error("token expired"));
    const error = await errorOf(openaiChat(placeWith(() => new Response(""), { headers, keyHint: "Log in" })));
    expect(error).toMatchObject({
      kind: "authentication",
      message: "test: could not sign in: token expired",
      hint: "Log in",
    });
  });
});
