import { execFileSync } from "node:child_process";
import { constants, openSync, readdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import { Duplex } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { tempFolder } from "../../src/testing/index.ts";
import { networkLink } from "../../src/tools/shell/network/network-link.ts";
import { allows, hostRules } from "../../src/tools/shell/network/network-rules.ts";
import type { AllowedHosts } from "../../src/tools/shell/sandbox/sandbox.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const PUBLIC = "93.184.216.34";
const BIG = Buffer.alloc(3 * 1024 * 1024, "0123456789abcdef");

let server: Server;
let port = 0;
const heard: string[] = [];
const dialled: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    heard.push(`${request.method} ${request.headers.host} ${request.url}`);
    let bytes = 0;
    request.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    request.on("end", () => response.end(request.url === "/big" ? BIG : `hello ${bytes}\n`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());

/** Names lead where a test wants; the public address is played by a server on this machine. */
const network = (): AllowedHosts => ({
  allowedHosts: ["allowed.test", "*.wild.test:8443", "rebind.test", "two.test", "127.0.0.1:80"],
  resolve: async (host) => {
    const known: Record<string, string[]> = { "rebind.test": ["127.0.0.1"], "two.test": [PUBLIC, "169.254.169.254"] };
    return known[host] ?? [PUBLIC];
  },
  dial: (address, wanted) => {
    dialled.push(`${address}:${wanted}`);
    return connect(port, "127.0.0.1");
  },
});

describe.runIf(works)("a sandbox with allowed hosts", () => {
  it("a sandbox with allowed hosts reaches the local network only when allowed, by hosts named in full", async () => {
    const places: Record<string, string> = {
      "near.test": "10.0.0.5",
      "a.wild.test": "10.0.0.6",
      "cloud.test": "169.254.169.254",
    };
    const local = {
      ...network(),
      localNetwork: true,
      allowedHosts: ["near.test", "*.wild.test", "cloud.test", "127.0.0.1"],
      resolve: async (host: string) => [places[host] ?? PUBLIC],
    };
    await using stage = await shellStage({ sandboxed: { network: local } });
    const { output } = await stage.run(`
      for host in near.test a.wild.test cloud.test 127.0.0.1; do
        curl -s -o /dev/null -w '%{http_code} ' --max-time 10 --noproxy '' http://$host/
      done`);
    expect(output).toBe("200 403 403 200 ");
  });

  it("a sandbox with allowed hosts reaches hosts through the proxy, by request and by tunnel, and nothing else", async () => {
    const warnings: string[] = [];
    await using stage = await shellStage({
      sandboxed: { network: network() },
      onWarning: (message) => void warnings.push(message),
    });
    heard.length = 0;
    dialled.length = 0;
    const { output } = await stage.run(`
      curl -s --max-time 10 http://allowed.test/one
      curl -s --max-time 10 --proxytunnel http://a.wild.test:8443/two
      curl -s --max-time 10 --data-binary @- http://allowed.test/three < <(head -c 2000000 /dev/zero)
      for host in other.test wild.test:8443 allowed.test:22 rebind.test two.test 127.0.0.1; do
        curl -s -o /dev/null -w '%{http_code} ' --max-time 10 --noproxy '' http://$host/
      done
      curl -s --max-time 2 --noproxy '*' http://127.0.0.1:${port}/canary || echo; echo x > /dev/tcp/127.0.0.1/${port}`);
    expect(output).toMatch(/^hello 0\nhello 0\nhello 2000000\n403 403 403 403 403 403 \n/);
    expect(heard).toEqual(["GET allowed.test /one", "GET a.wild.test:8443 /two", "POST allowed.test /three"]);
    expect(dialled).toEqual([`${PUBLIC}:80`, `${PUBLIC}:8443`, `${PUBLIC}:80`]);
    expect(warnings).toEqual([
      "The sandbox refused a connection to other.test:80: it is not among the allowed hosts.",
      "The sandbox refused a connection to wild.test:8443: it is not among the allowed hosts.",
      "The sandbox refused a connection to allowed.test:22: it is not among the allowed hosts.",
      "The sandbox refused a connection to rebind.test:80: it is a loopback address.",
      "The sandbox refused a connection to two.test:80: it is a cloud metadata address.",
      "The sandbox refused a connection to 127.0.0.1:80: it is a loopback address.",
    ]);
  });

  it("a sandbox with allowed hosts carries large answers side by side, whole, and leaves no pipe behind", async () => {
    await using stage = await shellStage({ sandboxed: { network: network() } });
    const one = "curl -s --max-time 15 http://allowed.test/big | sha256sum";
    const { output } = await stage.run(`for i in 1 2 3 4 5 6; do (${one}) & done; wait`);
    expect(new Set(output.trim().split("\n")).size).toBe(1);
    expect(output.trim().split("\n")).toHaveLength(6);
    const { output: direct } = await stage.run(
      `head -c ${BIG.length} < <(yes 0123456789abcdef | tr -d '\\n') | sha256sum`,
    );
    expect(output.startsWith(direct)).toBe(true);
    expect(readdirSync(stage.state.at("sandbox")).filter((name) => name.startsWith("net-"))).toEqual([]);
  });

  it("a sandbox with allowed hosts has these hosts in a terminal too", async () => {
    await using stage = await shellStage({ sandboxed: { network: network() } });
    const { shellId } = await stage.run("curl -s --max-time 10 http://allowed.test/", { mode: "async", shellId: "t" });
    expect((await stage.wait(shellId)).output).toBe("hello 0\n");
    expect((await stage.run("curl -s http://allowed.test/", { shellId: "t" })).output).toBe("hello 0\n");
  });

  it("D03 D04 a sandbox reaches no Unix socket, and has no network at all when no host is allowed", async () => {
    await using stage = await shellStage({ sandboxed: { network: network() } });
    const socket = `'${process.execPath}' -e 'require("net").connect("/tmp/x").on("error", (e) => console.log(e.code))'`;
    // Node 22 warns on stderr that its use of a proxy is experimental.
    expect((await stage.run(`${socket} 2>/dev/null`)).output).toBe("EPERM\n");
    await using closed = await shellStage({ sandboxed: { network: { allowedHosts: [] } } });
    heard.length = 0;
    const { output } = await closed.run(
      `env | grep -ci proxy; curl -s --max-time 2 http://127.0.0.1:${port}/ ; echo $?`,
    );
    expect([output, heard]).toEqual(["0\n7\n", []]);
  });
});

describe("rules for hosts", () => {
  it("host rules allow exactly what they say", () => {
    const rules = hostRules(["Example.com", "api.test:8443", "*.cdn.test"]);
    const tried = ["example.com:443", "EXAMPLE.com.:80", "example.com:22", "www.example.com:443", "api.test:8443"];
    const more = ["api.test:443", "a.cdn.test:443", "a.b.cdn.test:80", "cdn.test:443", "evilcdn.test:443"];
    const allowed = [...tried, ...more].filter((text) =>
      allows(rules, text.split(":")[0] ?? "", Number(text.split(":")[1])),
    );
    expect(allowed).toEqual([
      "example.com:443",
      "EXAMPLE.com.:80",
      "api.test:8443",
      "a.cdn.test:443",
      "a.b.cdn.test:80",
    ]);
  });

  it.each(["*", "*.", "https://a.test", "a.test:0", "a.test:99999", "a test", "*.*.test", ""])(
    "host rules refuse %j",
    (text) => {
      expect(() => hostRules([text])).toThrow("cannot be used");
    },
  );
});

describe("the link out of a sandbox", () => {
  const frame = (type: number, id: number, length: number, payload = Buffer.alloc(0)): Buffer => {
    const head = Buffer.alloc(9);
    head.writeUInt8(type, 0);
    head.writeUInt32LE(id, 1);
    head.writeUInt32LE(length, 5);
    return Buffer.concat([head, payload]);
  };

  it.each([
    ["a frame of unbounded length", [frame(2, 1, 0xffff_ffff)]],
    ["an unknown kind", [frame(1, 1, 0), frame(9, 1, 0)]],
    ["a connection that is open already", [frame(1, 1, 0), frame(1, 1, 0)]],
    [
      "more than was allowed",
      [frame(1, 1, 0), ...Array.from({ length: 20 }, () => frame(2, 1, 32_768, Buffer.alloc(32_768)))],
    ],
  ])("the proxy link of a sandbox ends on %s", (_, frames) => {
    let nonsense = 0;
    const link = networkLink({
      Duplex,
      maxConnections: 4,
      send: () => undefined,
      unsent: () => 0,
      onConnection: () => undefined,
      onNonsense: () => nonsense++,
    });
    for (const bytes of frames) link.receive(bytes);
    expect(nonsense).toBe(1);
  });

  it("the proxy link of a sandbox accepts a limited number of connections", () => {
    const sent: Buffer[] = [];
    let taken = 0;
    const link = networkLink({
      Duplex,
      maxConnections: 4,
      send: (bytes) => void sent.push(bytes),
      unsent: () => 0,
      onConnection: () => taken++,
      onNonsense: () => undefined,
    });
    for (let id = 1; id <= 6; id++) link.receive(frame(1, id, 0));
    expect([taken, sent]).toEqual([4, [frame(4, 5, 0), frame(4, 6, 0)]]);
  });

  /** A link over a pipe of which nobody reads the other end. */
  async function unreadLink(onConnection: (connection: Duplex) => unknown) {
    const folder = await tempFolder();
    onTestFinished(() => folder.remove());
    execFileSync("mkfifo", [folder.at("pipe")]);
    const fd = openSync(folder.at("pipe"), constants.O_RDWR | constants.O_NONBLOCK);
    const output = new Socket({ fd, readable: false, writable: true });
    onTestFinished(() => void output.destroy());
    const state = { nonsense: 0, unsent: () => output.writableLength };
    const link = networkLink({
      Duplex,
      maxConnections: 64,
      send: (bytes) => void output.write(bytes),
      unsent: state.unsent,
      onConnection: (connection) => void onConnection(connection),
      onNonsense: () => state.nonsense++,
    });
    output.on("drain", () => link.drained());
    return { link, state, path: folder.at("pipe") };
  }
  /** So that Node's own work on the pipe happens in between. */
  const breath = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it.each([
    ["opens connections", (id: number) => frame(1, id, 0)],
    [
      "opens and closes connections",
      (id: number) => Buffer.concat([frame(1, id, 0), frame(1, id + 1e6, 0), frame(4, id, 0)]),
    ],
  ])(
    "the proxy link of a sandbox ends when the other side %s without reading, in bounded memory",
    async (_, attack) => {
      const { link, state } = await unreadLink(() => undefined);
      let most = 0;
      for (let batch = 0; batch < 300; batch++) {
        link.receive(Buffer.concat(Array.from({ length: 1000 }, (_, index) => attack(batch * 1000 + index + 1))));
        most = Math.max(most, state.unsent());
        await breath();
      }
      expect([state.nonsense, most < 1.1 * 1024 * 1024]).toEqual([1, true]);
      const [more, before] = [Buffer.alloc(1024 * 1024, 1), process.memoryUsage().arrayBuffers];
      for (let batch = 0; batch < 64; batch++) link.receive(more);
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024); // nothing of it is held
    },
  );

  it("the proxy link of a sandbox holds data back when 64 connections send to a program that does not read", async () => {
    const connections: Duplex[] = [];
    const { link, state, path } = await unreadLink((connection) => connections.push(connection));
    for (let id = 1; id <= 64; id++) link.receive(frame(1, id, 0));
    const payload = Buffer.alloc(200_000, "x");
    for (const connection of connections) connection.end(payload);
    await breath();
    expect([state.nonsense, state.unsent() < 400 * 1024]).toEqual([0, true]);
    const reader = new Socket({ fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK), writable: false });
    onTestFinished(() => void reader.destroy());
    let arrived = 0;
    reader.on("data", (bytes: Buffer) => {
      arrived += bytes.reduce((sum, byte) => sum + Number(byte === 120), 0);
    });
    await expect.poll(() => arrived).toBe(64 * payload.length);
  });
});
