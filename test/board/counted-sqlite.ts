/**
 * Stands in for SQLite in a program that is to be killed: the same, but with KILL_STATEMENT=n the process dies by signal 9
 * right before the nth statement that writes, with `n+` right after it. At its end it prints the statements.
 */
import { DatabaseSync as Real, type StatementSyncInstance } from "@photostructure/sqlite";

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
  override exec(sql: string): void {
    counted(sql, () => super.exec(sql));
  }

  override prepare(sql: string): StatementSyncInstance {
    const statement = super.prepare(sql);
    const run: StatementSyncInstance["run"] = (...values) => counted(sql, () => statement.run(...values));
    // What else it has works on itself only.
    return new Proxy(statement, {
      get(_, name) {
        if (name === "run") return run;
        const member: unknown = Reflect.get(statement, name);
        return typeof member === "function" ? member.bind(statement) : member;
      },
    });
  }
}

process.on("exit", () => {
  process.stdout.write(`${JSON.stringify(seen)}\n`);
});
