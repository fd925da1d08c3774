import { expect, it } from "vitest";
import { systemStamp } from "../../lib/stamp.ts";
import { Github } from "./github.ts";
import { defaultOf, knownModel, readModels } from "./models.ts";

const list = {
  data: [
    { id: "embed", capabilities: { type: "embeddings" } },
    { id: "hidden", model_picker_enabled: false, is_chat_default: true },
    {
      id: "one",
      name: "The one",
      supported_endpoints: ["/responses", "ws:/responses"],
      capabilities: {
        type: "chat",
        supports: { vision: false },
        limits: { max_prompt_tokens: 900, max_output_tokens: 100 },
      },
    },
    { id: "two", is_chat_default: true, capabilities: { limits: { max_context_window_tokens: 5000 } } },
    { name: "nameless" },
  ],
};

it("a list of models contains those that chat requests can use", () => {
  const models = readModels(list) ?? [];
  expect(models.map(({ id }) => id)).toEqual(["hidden", "one", "two"]);
  expect(defaultOf(models)).toBe("two");
  expect(models.slice(1).map(knownModel)).toEqual([
    {
      name: "one",
      id: "one",
      displayName: "The one",
      price: null,
      contextWindow: 1000,
      maxOutputTokens: 100,
      vision: false,
      wire: "responses",
      sockets: true,
    },
    { name: "two", id: "two", price: null, contextWindow: 5000 },
  ]);
  expect(readModels({ error: "no" })).toBeUndefined();
});

it.each([
  ["they are offered", {}, {}, true],
  ["the session says no", {}, { sockets: false }, false],
  ["the environment says no", { COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES: "true" }, {}, false],
])(
  "WebSockets are used where the model, the session and the environment allow them: %s",
  async (_, environment, carrying, sockets) => {
    const github = new Github({
      environment: { COPILOT_API_URL: "http://127.0.0.1:1", ...environment },
      stamp: systemStamp,
      userAgent: "test",
    });
    const fetch = async (): Promise<Response> => Response.json(list);
    const settings = await github.settingsWith({ providers: [], discovery: false }, "token", { fetch, ...carrying });
    expect(settings.providers[0]?.models.find(({ name }) => name === "one")?.sockets).toBe(sockets);
  },
);
