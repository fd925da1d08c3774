/** One seeded defect. `npm run test:mutation` applies it to a copy of the tree; the named test must fail. */
export interface Defect {
  readonly id: string;
  readonly file: string;
  /** A text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly test: string;
  /** The title of the test as the test file has it, or a part of it that no placeholder interrupts. */
  readonly title: string;
  /** The damage that the defect would do. */
  readonly why: string;
  /** The test runs the built program, so the copy is built first. */
  readonly build?: true;
}
