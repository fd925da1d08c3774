/** The filter of system calls: its decisions, computed from the program itself, and its effect in a real sandbox. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { seccompFilter } from "../../src/tools/shell/sandbox/seccomp.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const hasPython = spawnSync("python3", ["-c", ""]).status === 0;

const machines = [
  { machine: "x64", architecture: 0xc000003e, socket: 41, socketpair: 53 },
  { machine: "arm64", architecture: 0xc00000b7, socket: 198, socketpair: 199 },
];
const [EPERM, EAFNOSUPPORT] = [1, 97];
const FAMILIES = { AF_INET: 2, AF_INET6: 10, AF_NETLINK: 16 };

/** The errno with which the filter refuses a call; 0 when it allows it. */
function decision(machine: string, call: { architecture: number; number: number; args: readonly number[] }): number {
  const program = seccompFilter(machine) ?? Buffer.alloc(0);
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number, 0);
  data.writeUInt32LE(call.architecture, 4);
  for (const [index, value] of call.args.entries()) data.writeUInt32LE(value >>> 0, 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; at < program.length; at += 8) {
    const code = program.readUInt16LE(at);
    const value = program.readUInt32LE(at + 4);
    const jump = (isTrue: boolean): void => {
      at += 8 * program.readUInt8(at + (isTrue ? 2 : 3));
    };
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0;
    else if (code === 0x15) jump(accumulator === value);
    else if (code === 0x35) jump(accumulator >= value);
    else if (code === 0x45) jump((accumulator & value) !== 0);
    else if (code === 0x06) return value === 0x7fff0000 ? 0 : value & 0xffff;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error("the program has no end");
}

describe.each(machines)("the filter for $machine", ({ machine, architecture, socket, socketpair }) => {
  const asks = (number: number, ...args: number[]): number => decision(machine, { architecture, number, args });

  it("the seccomp filter allows sockets of the three internet and netlink families and of no other", () => {
    const allowed = Array.from({ length: 256 }, (_, family) => family).filter(
      (family) => asks(socket, family, 1) === 0,
    );
    expect(allowed).toEqual(Object.values(FAMILIES));
  });

  it("the seccomp filter refuses Unix sockets with EPERM and unknown families as a kernel without them does", () => {
    expect(asks(socket, 1, 1)).toBe(EPERM);
    const others = {
      AF_ALG: 38,
      AF_VSOCK: 40,
      AF_QIPCRTR: 42,
      AF_XDP: 44,
      AF_TIPC: 30,
      AF_BLUETOOTH: 31,
      AF_PACKET: 17,
    };
    for (const [name, family] of Object.entries({ ...others, "a negative number": -1 }))
      expect(asks(socket, family, 1), name).toBe(EAFNOSUPPORT);
  });

  it("the seccomp filter allows only stream pairs, and only of Unix sockets", () => {
    const [stream, datagram, closeOnExec] = [1, 2, 0o2000000];
    expect([asks(socketpair, 1, stream), asks(socketpair, 1, stream | closeOnExec)]).toEqual([0, 0]);
    expect(asks(socketpair, 1, datagram)).toBe(EPERM);
    expect([asks(socketpair, 30, stream), asks(socketpair, 40, stream)]).toEqual([EAFNOSUPPORT, EAFNOSUPPORT]);
  });

  it("the seccomp filter allows calls it does not name and refuses calls of another architecture", () => {
    expect(asks(0)).toBe(0);
    expect(decision(machine, { architecture: 0x40000003, number: 0, args: [] })).toBe(EPERM);
  });
});

/** Prints the number of each family of which a socket of any type can be made. */
const TRY_FAMILIES = `
import socket, errno
for family in range(0, 64):
  codes = set()
  for kind in (1, 2, 3, 5):
    try: socket.socket(family, kind, 0).close(); codes.add("made")
    except OSError as error: codes.add(errno.errorcode[error.errno])
  if codes != {"EAFNOSUPPORT"}: print(family, *sorted(codes))
`;

describe.runIf(works && hasPython)("a sandboxed program", () => {
  it.each([false, true])(
    "a sandboxed program gets no socket of another family (network allowed: %s)",
    async (network) => {
      await using stage = await shellStage({ sandboxed: { network } });
      await stage.workspace.files({ "try.py": TRY_FAMILIES });
      const { output } = await stage.run("python3 try.py");
      const found = new Map(output.split("\n").map((line) => [Number(line.split(" ")[0]), line]));
      expect(found.get(1)).toBe("1 EPERM");
      for (const family of Object.values(FAMILIES)) found.delete(family);
      expect([...found.keys()].sort()).toEqual([0, 1]); // the empty last line, and AF_UNIX
      const open = spawnSync("python3", [stage.workspace.at("try.py")], { encoding: "utf8" }).stdout;
      expect(open, "without the sandbox").toMatch(/^1 .*made/m);
    },
  );

  it("a sandboxed program can still use sockets within its own network", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    await stage.workspace.files({
      "loop.cjs": `const server = require("net").createServer((socket) => socket.end("fine\\n")).listen(0, "127.0.0.1", () =>
        require("net").connect(server.address().port, "127.0.0.1").on("data", (text) => console.log(String(text).trim())).on("close", () => server.close()));
        console.log(Object.keys(require("os").networkInterfaces()).join())`,
      "loop.py": `import socket, subprocess, asyncio, multiprocessing
server = socket.create_server(("127.0.0.1", 0)); client = socket.create_connection(server.getsockname())
socket.getaddrinfo("localhost", 80); socket.if_nameindex()
async def main(): return (await (await asyncio.create_subprocess_exec("true")).wait())
print("fine", asyncio.run(main()))`,
    });
    const { output } = await stage.run(`'${process.execPath}' loop.cjs; python3 loop.py`);
    expect(output).toBe("lo\nfine\nfine 0\n");
  });
});
