/**
 * `troupe doctor`: checks the installation, the configuration and the machine. Checks change nothing; `--fix` runs the
 * safe repairs. This folder has one file for each group of checks.
 */
import { workingDirectory } from "../../context/working-directory.ts";
import { plural, sanitise, sanitiseLine } from "../../lib/text.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { version } from "../../runtime/version.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { terminalAsk } from "../ask.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { write } from "../output/output.ts";
import { configFiles } from "./config-files.ts";
import { type Check, type CheckContext, type Finding, reasonOf } from "./finding.ts";
import { install } from "./install.ts";
import { disk, git, sandbox } from "./machine.ts";
import { providers } from "./providers.ts";
import { index, logs, stateFolder } from "./state.ts";
import { leaveTerminal, resetTerminal, terminal } from "./terminal.ts";

const groups: readonly (readonly [title: string, checks: readonly Check[]])[] = [
  ["Install", [install]],
  ["Configuration", [configFiles]],
  ["Models", [providers]],
  ["Machine", [sandbox, git, disk]],
  ["Terminal", [terminal]],
  ["State", [stateFolder, logs, index]],
];

export async function doctorCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  if (given.words.length > 1) throw usage("troupe doctor takes flags only.");
  if (given.has("reset-terminal")) return reset();
  const isJson = wantsJson(given);
  const runtime = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const cwd = process.cwd();
  const root = workingDirectory(cwd).gitRoot ?? cwd;
  const isOnline = consent({ isGiven: given.has("online"), mayAsk: !isJson });
  const context = { environment: process.env, cwd, root, home: runtime.home, runtime, launcher, isOnline };
  const all: Reported[] = [];
  try {
    for (const [title, checks] of groups) {
      const found = await inGroup(checks, context);
      const reported = given.has("fix") ? await applyFixes(found) : found;
      all.push(...reported.map((finding) => ({ group: title, ...finding })));
      if (!isJson) await write(groupText(title, reported));
    }
  } finally {
    await runtime.close();
  }
  const problems = all.filter(({ status }) => status === "problem").length;
  if (isJson) await write(`${JSON.stringify(report(all), undefined, 2)}\n`);
  else await write(`\n${closingText(all)}\n`);
  return problems === 0 ? exitCodes.done : exitCodes.failed;
}

async function reset(): Promise<ExitCode> {
  await resetTerminal();
  await write("The terminal's modes are reset. If text still looks wrong, run: reset\n");
  leaveTerminal();
  return exitCodes.done;
}

/** Returns a function that asks the user once, unless `--online` was given or nobody can be asked. */
function consent({ isGiven, mayAsk }: { isGiven: boolean; mayAsk: boolean }): CheckContext["isOnline"] {
  const { ask } = mayAsk ? terminalAsk() : {};
  let answer: Promise<boolean> | undefined;
  return (names) => {
    if (isGiven) return Promise.resolve(true);
    answer ??= ask
      ? ask(`Send one short request to ${names.join(", ")}? It may cost a fraction of a cent. [y/N] `)
      : Promise.resolve(false);
    return answer;
  };
}

const CHECK_TIMEOUT_MS = 60_000;

async function inGroup(checks: readonly Check[], context: CheckContext): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const check of checks) found.push(...(await runWithTimeout(check, context)));
  return found;
}

/** A check that fails or hangs is a problem itself, and the others still run. */
async function runWithTimeout(check: Check, context: CheckContext): Promise<readonly Finding[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly Finding[]>((resolve) => {
    const summary = `the check did not end within ${CHECK_TIMEOUT_MS / 1000} s`;
    timer = setTimeout(() => resolve([{ id: `${check.name}.timeout`, status: "problem", summary }]), CHECK_TIMEOUT_MS);
  });
  const result = check(context).catch((error: unknown): readonly Finding[] => [
    { id: `${check.name}.failed`, status: "problem", summary: `the check failed: ${reasonOf(error)}` },
  ]);
  return Promise.race([result, late]).finally(() => clearTimeout(timer));
}

/** A finding as it is shown. `fixed` says what was repaired. */
type Shown = Finding & { readonly fixed?: string };
type Reported = Shown & { readonly group: string };

function applyFixes(found: readonly Finding[]): Promise<Shown[]> {
  return Promise.all(
    found.map(async (finding): Promise<Shown> => {
      if (finding.fix === undefined || finding.status === "ok") return finding;
      try {
        const { fix, remedy: _, ...rest } = finding;
        return { ...rest, status: "ok", fixed: await fix() };
      } catch (error) {
        return { ...finding, summary: `${finding.summary}; the repair failed: ${reasonOf(error)}` };
      }
    }),
  );
}

function groupText(title: string, found: readonly Shown[]): string {
  const lines = found.map(({ status, summary, remedy, fixed: done }) => {
    const head = `  ${(done === undefined ? status : "fixed").padEnd(8)} ${sanitiseLine(done ?? summary)}`;
    const more = status === "ok" || remedy === undefined ? [] : [`           ${sanitiseLine(remedy)}`];
    return [head, ...more].join("\n");
  });
  return sanitise(`${title}\n${lines.join("\n")}\n`);
}

function closingText(all: readonly Reported[]): string {
  const count = (wanted: Finding["status"]): number => all.filter(({ status }) => status === wanted).length;
  const [problems, warnings] = [count("problem"), count("warning")];
  if (problems + warnings === 0) return "No problems found.";
  const fixable = all.filter(({ status, fix }) => status !== "ok" && fix !== undefined).length;
  const offer = fixable === 0 ? "" : ` \`troupe doctor --fix\` repairs ${fixable} of them.`;
  return `${plural(problems, "problem")}, ${plural(warnings, "warning")}.${offer}`;
}

const report = (all: readonly Reported[]): object => ({
  version,
  ok: all.every(({ status }) => status !== "problem"),
  findings: all.map(({ fix, ...finding }) => ({
    ...finding,
    ...(fix && finding.status !== "ok" && { fixable: true }),
  })),
});
