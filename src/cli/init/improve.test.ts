import { expect, it } from "vitest";
import { fileIn } from "./improve.ts";

it("troupe init takes a file from an answer, with and without a fence, and refuses anything else", () => {
  expect(fileIn("# Rules\n\nBe kind.")).toBe("# Rules\n\nBe kind.\n");
  expect(fileIn("\n```markdown\n# Rules\n\n```sh\nnpm test\n```\n```\n")).toBe("# Rules\n\n```sh\nnpm test\n```\n");
  expect(fileIn("Here is the file:\n# Rules")).toBeUndefined();
  expect(fileIn(`# ${"x".repeat(50_000)}`)).toBeUndefined();
  expect(fileIn("")).toBeUndefined();
});
