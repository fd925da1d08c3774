/** The part of a database connection that statements need, and the kinds of its errors. */

export interface Queries {
  query<Row extends object = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Rows<Row>>;
}

export interface Rows<Row> {
  readonly rows: readonly Row[];
  /** Number of rows returned or changed. */
  readonly count: number;
}

/** Errors of the network and of the driver, which have no code of the server. */
const NETWORK = /^(?:ECONN|EPIPE$|ETIMEDOUT$|ENOTFOUND$|EAI_AGAIN$|EHOST|ENET)/;
const DRIVER = /^(?:Connection terminated|timeout exceeded|Query read timeout)/;

/**
 * True if the server was unreachable or could not work: it had no space, memory or connections, shut down, or failed to read or
 * write its files. What failed for this reason is worth repeating until the server works again.
 */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  if (/^(?:08|53|58)[0-9A-Z]{3}$|^57P/.test(code) || NETWORK.test(code) || DRIVER.test(error.message)) return true;
  return isOutage(error.cause);
}

/** True for an outage, and for what the server ended because of others: a deadlock, a lock or a statement too slow. */
export function isPassing(error: unknown): boolean {
  if (isOutage(error)) return true;
  return error instanceof Error && "code" in error && /^(?:40[0-9A-Z]{3}|55P03|57014)$/.test(String(error.code));
}

/** A condition in SQL with its values as `$1` and so on. */
export interface Condition {
  readonly condition: string;
  readonly values: readonly unknown[];
}

/** Returns the condition for a statement that has `by` values of its own before those of the condition. */
export const conditionAfter = ({ condition }: Condition, by: number): string =>
  `(${condition.replace(/\$(\d+)/g, (_, number: string) => `$${Number(number) + by}`)})`;
