/** The connection of the dashboard to the database of a cluster. It is opened at its first use, and again after that failed. */
import { type Cluster, openCluster, wordErrors } from "../../runtime/cluster/cluster.ts";

const CONNECTIONS = 6;

export class Connection {
  readonly #url: string;
  #opening: Promise<Cluster> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  async use<T>(work: (cluster: Cluster) => Promise<T>): Promise<T> {
    this.#opening ??= openCluster({ url: this.#url, connections: CONNECTIONS });
    const cluster = await this.#opening.catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return wordErrors(this.#url, () => work(cluster));
  }

  async close(): Promise<void> {
    const cluster = await this.#opening?.catch(() => undefined);
    await cluster?.close();
  }
}
