import { expect, it } from "vitest";
import { spaceFinding } from "./machine.ts";

it("troupe doctor warns below 1 GiB of free disk space, and reports a problem below 0.1 GiB", () => {
  const status = (gib: number): string => spaceFinding(gib * 1024 ** 3, "/home").status;
  expect([5, 0.9, 0.05].map(status)).toEqual(["ok", "warning", "problem"]);
});
