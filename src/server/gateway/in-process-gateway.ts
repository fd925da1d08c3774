import { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import { inProcessTransport } from "../in-process-transport.ts";
import { Gateway } from "./gateway.ts";

/** A gateway inside this process, for `createClient({ connection: inProcessGateway(…) })`. */
export function inProcessGateway(options: {
  readonly url: string;
  readonly home: string;
  /** Receives messages for the user. Default: they are discarded. */
  readonly say?: (message: string) => void;
}) {
  const { url, home, say = () => undefined } = options;
  return {
    kind: "custom" as const,
    open: async () => inProcessTransport(new Gateway({ sessions: await RemoteSessions.open({ url, home }), say })),
  };
}
