/** Plays the cases of a range of seeds: `fuzz-program <from> <step> <count> <seconds>`. Prints one line of JSON per case. */
import { indexOfRepository, removeFolder, workFolder } from "./play.ts";
import { runCase } from "./run-case.ts";

const [from = 0, step = 1, count = 0, seconds = 60] = process.argv.slice(2).map(Number);
const base = workFolder();
const stop = (): void => {
  removeFolder(base);
  process.exit(143);
};
// A terminal and the script that started this may both send one.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
process.stdout.once("error", stop);
const index = indexOfRepository(base);
const end = performance.now() + seconds * 1000;
try {
  for (let number = 0; number < count && performance.now() < end; number++) {
    const seed = from + number * step;
    const outcome = await runCase(base, seed, index);
    process.stdout.write(`${JSON.stringify({ seed, ...outcome })}\n`);
  }
} finally {
  removeFolder(base);
}
