import { describe, expect, it } from "vitest";
import { keyReader, runKeyCommand, signedHeaders, splitCommand } from "./key.ts";

const node = (script: string): string[] => [process.execPath, "-e", script];

describe("a key", () => {
  it.each([
    ["bearer", { authorization: "Bearer k1", a: "b" }],
    ["x-api-key", { "x-api-key": "k1", a: "b" }],
    ["api-key", { "api-key": "k1", a: "b" }],
    ["none", { a: "b" }],
  ] as const)("a key is sent in the form %s", async (auth, headers) => {
    const sign = signedHeaders({ auth, key: { type: "value", value: "k1" }, headers: { a: "b" } });
    expect(await sign()).toEqual(headers);
  });

  it("a key is not sent when it is missing", async () => {
    expect(await signedHeaders({ auth: "bearer", key: { type: "none" }, headers: {} })()).toEqual({});
  });
});

describe("a key command", () => {
  it("the output of a key command is used as the key for five minutes", async () => {
    let now = 0;
    const stamp = { id: String, now: () => 0, monotonic: () => now, sleep: async () => undefined };
    const read = keyReader(
      { type: "command", command: node("console.log(process.hrtime.bigint().toString())") },
      stamp,
    );
    const first = await read();
    now = 299_999;
    expect(await read()).toBe(first);
    now = 300_000;
    expect(await read()).not.toBe(first);
  });

  it("a key command is not run by a shell", async () => {
    expect(await runKeyCommand([...node("console.log(process.argv[1])"), "$HOME;`id`"])).toBe("$HOME;`id`");
  });

  it.each([
    ["fails", node("console.error('no token'); process.exit(3)"), "failed: no token"],
    ["prints nothing", node(""), "printed nothing"],
    ["prints a page", node("console.log('a\\nb')"), "printed more than one line"],
    ["does not exist", ["/no/such/program"], "was not found"],
  ])("a key command that %s is reported", async (_, command, message) => {
    await expect(runKeyCommand(command, 25_000)).rejects.toThrow(message);
  });

  it("a hanging key command is ended at its timeout and reported", async () => {
    const hanging = node("setTimeout(() => {}, 60_000)");
    await expect(runKeyCommand(hanging, 500)).rejects.toThrow("did not finish within 0.5 s");
  });

  it("a key command runs again after it failed", async () => {
    const read = keyReader({ type: "command", command: ["/no/such/program"] });
    await expect(read()).rejects.toThrow("not found");
    await expect(read()).rejects.toThrow("not found");
  });
});

it.each([
  ["pass show key", ["pass", "show", "key"]],
  ["op read \"op://a b/c\"  'd e'", ["op", "read", "op://a b/c", "d e"]],
  ['a\\ b "c\\"d" e"f"g', ["a b", 'c"d', "efg"]],
  ["echo $HOME | cat", ["echo", "$HOME", "|", "cat"]],
])("a command line %j is split into words without any expansion", (text, words) => {
  expect(splitCommand(text)).toEqual(words);
});
