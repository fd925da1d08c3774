/**
 * The SDK folder: a client of the server's protocol, for programs and for troupe's own screens. It depends on
 * `protocol` and not on the runtime. So the same code works with a process of its own, with a running server, and
 * inside this process. Begin with `createClient`.
 */
import { Client, type ClientOptions } from "./client.ts";

/** Returns a connected client. `await using` or `stop` ends it, and the process it started. */
export async function createClient(options: ClientOptions = {}): Promise<Client> {
  const client = new Client(options);
  await client.start();
  return client;
}
