import type { Defect } from "./defect.ts";

const slots = { file: "src/tasks/slots.ts", test: "test/tasks/slots.test.ts" } as const;
const title = "are never more than the limit, and no task waits while one is free";

/** One defect for each verdict of the run. Only the first is caught. */
export const defects: readonly Defect[] = [
  {
    ...slots,
    id: "one-more-slot",
    find: "while (this.#used < this.#limits.maxConcurrency) {",
    replace: "while (this.#used <= this.#limits.maxConcurrency) {",
    title,
    why: "One agent more than allowed would run.",
  },
  {
    ...slots,
    id: "harmless",
    find: "while (this.#used < this.#limits.maxConcurrency) {",
    replace: "while (this.#limits.maxConcurrency > this.#used) {",
    title,
    why: "It means the same, so every test passes.",
  },
  {
    ...slots,
    id: "not-code",
    find: "while (this.#used < this.#limits.maxConcurrency) {",
    replace: "while (this.#used <",
    title,
    why: "It does not compile, so no test runs.",
  },
  {
    ...slots,
    id: "no-such-test",
    find: "const first = this.#waiting.shift();",
    replace: "const first = this.#waiting.pop();",
    title: "a title that no test has",
    why: "A test that does not exist cannot fail.",
  },
];
