/**
 * Stands in for SQLite in a program that is to be killed: the same, but with KILL_STATEMENT=n the process dies by signal 9
 * right before the nth statement that writes, with `n+` right after it. At its end it prints the statements.
 */
// @ts-expect-error The build puts the real one here.
import { DatabaseSync as Real } from "real-sqlite";

interface Statement {
  run(...values: unknown[]): unknown;
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown;
}

const [, number = "", after = ""] = /^(\d+)(\+?)$/.exec(process.env.KILL_STATEMENT ?? "") ?? [];
const seen: string[] = [];

function counted<T>(sql: string, run: () => T): T {
  const isMeant = seen.push(sql.trim().replace(/\s+/g, " ").slice(0, 40)) === Number(number);
  if (isMeant && after === "") process.kill(process.pid, "SIGKILL");
  const result = run();
  if (isMeant) process.kill(process.pid, "SIGKILL");
  return result;
}

export class DatabaseSync extends Real {
  exec(sql: string): void {
    counted(sql, () => super.exec(sql));
  }

  prepare(sql: string): Statement {
    const statement: Statement = super.prepare(sql);
    return {
      run: (...values) => counted(sql, () => statement.run(...values)),
      get: (...values) => statement.get(...values),
      all: (...values) => statement.all(...values),
    };
  }
}

process.on("exit", () => {
  process.stdout.write(`${JSON.stringify(seen)}\n`);
});
