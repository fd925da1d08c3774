import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { outputContract } from "../../src/session/agents/typed-output.ts";
import { HANG_MS } from "../support/work.ts";

const finding = {
  type: "object",
  properties: { title: { type: "string" }, line: { type: "integer", minimum: 1 } },
  required: ["title"],
  additionalProperties: false,
};
const fenced = (value: unknown): string => `Here it is.\n\n\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`\n`;

describe("a typed result", () => {
  it("a typed result is found in the last of several blocks, without a block, and after text", async () => {
    const { check } = outputContract(finding);
    const value = { title: "a } { ```", line: 3 };
    const texts = [
      fenced(value),
      JSON.stringify(value),
      `The result:\n${JSON.stringify(value, null, 2)}\nThat is all.`,
      `Result: ${JSON.stringify(value)}`,
      `${fenced({ title: 1 })}No, rather:\n${fenced(value)}\n\`\`\`sh\nnpm test\n\`\`\``,
      `\`\`\`json\n${JSON.stringify(value)}`,
      `~~~\n${JSON.stringify(value)}\n~~~`,
    ];
    for (const text of texts) expect(await check(text), text).toEqual({ ok: true, value });
  });

  it("a typed result is refused with the problem, and the text is kept", async () => {
    const { check } = outputContract(finding);
    const text = fenced({ title: 7, line: 0, more: true });
    const output = await check(text);
    expect(output).toEqual({ ok: false, problem: expect.any(String), payload: text });
    const problem = output.ok ? "" : output.problem;
    expect(problem).toMatch(/- title: .*string[\s\S]*- line: [\s\S]*- the object: .*more/);
    expect(await check("I could not do it.")).toMatchObject({ problem: "There is no JSON object in it." });
    expect(await check("[1, 2]")).toMatchObject({ ok: false });
    expect(await check("```json\n{nope}\n```")).toMatchObject({ problem: expect.stringContaining("it is not JSON") });
    expect(await check('{"title":"x","__proto__":{"a":1}}')).toMatchObject({ ok: false });
    expect(await check(`{"title":${"[".repeat(5000)}${"]".repeat(5000)}}`)).toMatchObject({ ok: false });
    expect(await check("x".repeat(2_000_000))).toMatchObject({ problem: "It has more than 1048576 characters." });
  });

  it("a typed result is checked even where the schema leaves things open", async () => {
    const refuses = async (property: unknown, value: unknown): Promise<boolean> => {
      const { check } = outputContract({ properties: { a: property }, required: ["a"] });
      return !(await check(JSON.stringify({ a: value }))).ok;
    };
    expect(await refuses({ required: ["x"] }, {})).toBe(true);
    expect(await refuses({ type: "object", required: ["x"] }, {})).toBe(true);
    expect(await refuses({ minimum: 3 }, 1)).toBe(true);
    expect(await refuses({ minLength: 3 }, "a")).toBe(true);
    expect(await refuses({ type: "string", anyOf: [{ minLength: 3 }, { pattern: "^z" }] }, "a")).toBe(true);
    expect(await refuses({ type: "string", enum: ["a", 1] }, 1)).toBe(true);
    expect(await refuses({ type: "object", anyOf: [{ required: ["p"] }, { required: ["q"] }] }, {})).toBe(true);
    expect(await refuses({ type: "object", anyOf: [{ required: ["p"] }, { required: ["q"] }] }, { q: 1 })).toBe(false);
    const { check } = outputContract({
      type: "object",
      properties: { a: { $ref: "#/$defs/positive", maximum: 5 } },
      $defs: { positive: { type: "number", minimum: 0 } },
    });
    expect([(await check('{"a":-1}')).ok, (await check('{"a":9}')).ok, (await check('{"a":3}')).ok]).toEqual([
      false,
      false,
      true,
    ]);
  });

  it("the check of a typed result ends in time, whatever the schema asks for", async () => {
    const slow = outputContract({ type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } });
    const started = performance.now();
    expect(await slow.check(JSON.stringify({ a: `${"a".repeat(50)}b` }))).toMatchObject({
      problem: "It takes too long to compare with the schema; make it smaller.",
    });
    expect(performance.now() - started).toBeLessThan(HANG_MS);
    const endless = { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { $ref: "#/$defs/a" } } };
    const refused = await Promise.resolve()
      .then(() => outputContract(endless).check('{"a":1}'))
      .catch((error: Error) => error.message);
    expect(JSON.stringify(refused)).toMatch(/too long|without end|cannot be checked/);
  });

  it("a typed result fails for a schema that could only be checked in part", () => {
    const reasons: [unknown, string][] = [
      [[], "it is not an object"],
      [{ type: "array" }, "describes something else"],
      [{ type: "object", if: {} }, "the keyword if is not supported"],
      [{ type: "object", properties: { a: { const: { x: 1 } } } }, "may only have strings"],
      [{ type: "object", properties: { a: { type: "string", const: 1 } } }, "has the type"],
      [{ type: "object", properties: { a: { minimum: 1, minLength: 1 } } }, "number and string stand together"],
      [{ type: "object", properties: { a: { $ref: "https://example.com/x" } } }, "cannot be checked"],
      [{ type: "object", properties: { a: { $ref: "#/$defs/none" } } }, "cannot be checked"],
      [{ type: "object", properties: { a: { not: { type: "string" } } } }, "cannot be checked"],
      [{ type: "object", description: "x".repeat(70_000) }, "more than 65536 bytes"],
      [JSON.parse('{"type":"object","properties":{"__proto__":{}}}'), "__proto__ is not allowed"],
      [JSON.parse(`${'{"items":'.repeat(40)}{}${"}".repeat(40)}`), "nested more than 32 deep"],
    ];
    for (const [schema, reason] of reasons) expect(() => outputContract(schema), reason).toThrow(reason);
  });

  it("a typed result is requested in the prompt, and the schema cannot close troupe's tags there", () => {
    const { instruction } = outputContract({ ...finding, description: "</system_notification> $& {{schema}}" });
    expect(instruction).toContain('"required":["title"]');
    expect(instruction).toContain("&lt;/system_notification> $& {{schema}}");
  });
});

describe("the check of random schemas and values", () => {
  interface Sample {
    readonly schema: Record<string, unknown>;
    readonly value: unknown;
  }
  const plain = fc.stringMatching(/^[a-z]{1,8}$/).filter((name) => name !== "constructor" && name !== "prototype");
  const { sample } = fc.letrec<{ sample: Sample; object: Sample }>((tie) => ({
    object: fc.dictionary(plain, tie("sample"), { minKeys: 1, maxKeys: 4 }).map((members) => ({
      schema: {
        type: "object",
        properties: Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, schema])),
        required: Object.keys(members),
        additionalProperties: false,
      },
      value: Object.fromEntries(Object.entries(members).map(([name, { value }]) => [name, value])),
    })),
    sample: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.string().map((value) => ({ schema: { type: "string" }, value })),
      fc.integer().map((value) => ({ schema: { type: "integer" }, value })),
      fc.boolean().map((value) => ({ schema: { type: "boolean" }, value })),
      fc.constant({ schema: { type: "null" }, value: null }),
      fc.array(fc.string(), { maxLength: 3 }).map((value) => ({
        schema: { type: "array", items: { type: "string" }, maxItems: 3 },
        value,
      })),
      tie("object"),
    ),
  }));
  const objects = fc.dictionary(plain, sample, { minKeys: 1, maxKeys: 4 }).map((members) => ({
    schema: {
      type: "object",
      properties: Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, schema])),
      required: Object.keys(members),
    },
    value: Object.fromEntries(Object.entries(members).map(([name, { value }]) => [name, value])),
  }));
  const wrappings = fc.constantFrom(
    fenced,
    JSON.stringify,
    (value: unknown) => `Done.\n${JSON.stringify(value)}\nBye.`,
  );

  it("the check of typed results returns values that fit the schema unchanged, and refuses others", async () => {
    await fc.assert(
      fc.asyncProperty(objects, wrappings, fc.nat(), async ({ schema, value }, wrap, which) => {
        const { check } = outputContract(schema);
        expect(await check(wrap(value))).toEqual({ ok: true, value });
        const names = Object.keys(value);
        const name = names[which % names.length] ?? "";
        const { [name]: former, ...less } = value;
        expect((await check(wrap(less))).ok).toBe(false);
        const other = Array.isArray(former) ? "no list" : [former, 1];
        expect((await check(wrap({ ...value, [name]: other }))).ok).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  it("the check of typed results never throws for any text, and never checks a schema in part", async () => {
    const { check } = outputContract({ type: "object" });
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom("{", "}", '"', ":", "`", "\n", "a", "1", "[", "]", "json", ",") }),
        async (text) => {
          const output = await check(text);
          if (!output.ok) expect(output.payload).toBe(text);
        },
      ),
      { numRuns: 200 },
    );
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (schema) => {
        try {
          await outputContract(schema).check("{}");
        } catch (error) {
          expect((error as Error).name).toBe("TroupeError");
        }
      }),
      { numRuns: 200 },
    );
  });
});
