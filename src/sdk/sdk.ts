/**
 * For programs and for troupe's own screens: a client of the contract that the server speaks. It knows the words
 * (`protocol`) and nothing of the runtime, so the same code works on a process of its own, on a server that runs
 * already, and inside this process. Begin with `createClient`.
 */
import { Client, type ClientOptions } from "./client.ts";

/** A client that is connected. `await using` or `stop` ends it, and the process it started. */
export async function createClient(options: ClientOptions = {}): Promise<Client> {
  const client = new Client(options);
  await client.start();
  return client;
}
