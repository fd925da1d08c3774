import { type Cluster, openCluster, wordErrors } from "../../runtime/cluster/cluster.ts";
import type { Arguments } from "../args.ts";
import { databaseUrl } from "./database-url.ts";

/** Connects to the chosen database, runs a command, and words errors of the database. `creates`: creates missing tables. */
export async function useCluster<T>(
  given: Arguments,
  use: (cluster: Cluster) => Promise<T>,
  { creates = false }: { readonly creates?: boolean } = {},
): Promise<T> {
  const url = databaseUrl(given);
  const cluster = await openCluster({ url, creates });
  try {
    return await wordErrors(url, () => use(cluster));
  } finally {
    await cluster.close();
  }
}
