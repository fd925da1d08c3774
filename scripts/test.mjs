// `npm test`: builds, then runs every test with no provider key in sight, and ends with one plain line that counts
// them. Arguments go to vitest: `npm test -- test/scenarios`. `npm run test:slow` runs the long versions too.
// `--on-disk` keeps temporary files on the disk where they would be in memory.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cleanEnvironment } from "./clean-environment.mjs";
import { withFilesInMemory } from "./memory-files.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "troupe-test-"));
const files = mkdtempSync(join(tmpdir(), "troupe-test-"));
const report = join(scratch, "report.json");
const own = ["--slow", "--on-disk"];

const env = cleanEnvironment(join(scratch, "home"));
const given = process.argv.slice(2).filter((argument) => !own.includes(argument));
if (process.argv.includes("--slow")) env.TROUPE_SLOW = "1";

const run = (command, args, more = {}) => spawnSync(command, args, { cwd: root, stdio: "inherit", env, ...more });

const built = run(process.execPath, ["scripts/build.mjs"], { env: { ...env, TROUPE_SKIP_TYPES: "1" } });
if (built.status !== 0) process.exit(built.status ?? 1);

const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
const arguments_ = ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`, ...given];
const command = [process.execPath, vitest, ...arguments_];
const [program, ...words] = process.argv.includes("--on-disk") ? command : withFilesInMemory(files, command);
const tested = run(program, words);

let failed = 1;
try {
  const { numPassedTests, numFailedTests, numPendingTests, numTotalTestSuites, testResults } = JSON.parse(
    readFileSync(report, "utf8"),
  );
  const brokenFiles = testResults.filter(
    ({ status, assertionResults }) => status === "failed" && assertionResults.length === 0,
  ).length;
  failed = numFailedTests + brokenFiles;
  const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : "";
  if (numTotalTestSuites > 0) console.log(`${numPassedTests} passed, ${failed} failed${skipped}`);
} catch {
  console.error("test: vitest wrote no report");
}
for (const folder of [scratch, files]) rmSync(folder, { recursive: true, force: true });
process.exit(tested.status || (failed > 0 ? 1 : 0));
