/** The part of a database connection that statements need. */

export interface Queries {
  query<Row extends object = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Rows<Row>>;
}

export interface Rows<Row> {
  readonly rows: readonly Row[];
  /** Number of rows returned or changed. */
  readonly count: number;
}
