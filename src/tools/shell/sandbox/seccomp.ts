/**
 * The system calls that a sandboxed command may not make, as a classic BPF program. Denied calls fail with an ordinary
 * error: EPERM, unless another one is more informative. Sockets have an allow-list of address families. All other calls
 * are allowed; the namespaces and mounts of the sandbox limit them.
 */
type Architecture = "x64" | "arm64";

const AUDIT_ARCHITECTURE: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** Numbers per architecture; null when the call does not exist. */
const DENIED: readonly (readonly [name: string, x64: number | null, arm64: number | null])[] = [
  ["ptrace", 101, 117],
  ["process_vm_readv", 310, 270],
  ["process_vm_writev", 311, 271],
  ["kcmp", 312, 272],
  ["bpf", 321, 280],
  ["perf_event_open", 298, 241],
  ["userfaultfd", 323, 282],
  ["add_key", 248, 217],
  ["request_key", 249, 218],
  ["keyctl", 250, 219],
  ["io_uring_setup", 425, 425],
  ["io_uring_enter", 426, 426],
  ["io_uring_register", 427, 427],
  ["mount", 165, 40],
  ["umount2", 166, 39],
  ["pivot_root", 155, 41],
  ["chroot", 161, 51],
  ["open_tree", 428, 428],
  ["move_mount", 429, 429],
  ["fsopen", 430, 430],
  ["fsconfig", 431, 431],
  ["fsmount", 432, 432],
  ["fspick", 433, 433],
  ["mount_setattr", 442, 442],
  ["unshare", 272, 97],
  ["setns", 308, 268],
  ["name_to_handle_at", 303, 264],
  ["open_by_handle_at", 304, 265],
  ["pidfd_getfd", 438, 438],
  ["init_module", 175, 105],
  ["finit_module", 313, 273],
  ["delete_module", 176, 106],
  ["kexec_load", 246, 104],
  ["kexec_file_load", 320, 294],
  ["swapon", 167, 224],
  ["swapoff", 168, 225],
  ["reboot", 169, 142],
  ["acct", 163, 89],
  ["quotactl", 179, 60],
  ["iopl", 172, null],
  ["ioperm", 173, null],
  ["lookup_dcookie", 212, 18],
];
const CLONE = { x64: 56, arm64: 220 };
/** Its flags are in memory, which a filter cannot read. It is reported as missing, so that libraries use clone. */
const CLONE3 = { x64: 435, arm64: 435 };
const SOCKET = { x64: 41, arm64: 198 };
const SOCKETPAIR = { x64: 53, arm64: 199 };
const IOCTL = { x64: 16, arm64: 29 };

const NEW_NAMESPACES = 0x7e020000;
const AF_UNIX = 1;
/**
 * AF_INET, AF_INET6 and AF_NETLINK stay within the network namespace, which is empty unless the network is allowed. Other
 * families do not: AF_VSOCK reaches the host of a virtual machine, Bluetooth, NFC and QIPCRTR reach devices, and most of
 * the rest are rarely used kernel code.
 */
const SOCKET_FAMILIES = [2, 10, 16];
const SOCKET_TYPE_MASK = 0xf;
const SOCK_STREAM = 1;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
const X32_BIT = 0x40000000;

const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const AND = 0x54;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const ERRNO = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
/** The error of a kernel without the family, which programs expect. */
const EAFNOSUPPORT = 97;
const NUMBER = 0;
const ARCHITECTURE = 4;
/** The lower half of an argument: both architectures are little endian. */
const argument = (index: number): number => 16 + 8 * index;

interface Instruction {
  readonly code: number;
  readonly value: number;
  readonly whenTrue?: number;
  readonly whenFalse?: number;
}

/** Returns undefined for an architecture without a filter. */
export function seccompFilter(machine: string): Buffer | undefined {
  if (machine !== "x64" && machine !== "arm64") return undefined;
  const denied = DENIED.flatMap(([, x64, arm64]) => (machine === "x64" ? x64 : arm64) ?? []);
  return encode([
    load(ARCHITECTURE),
    { code: JUMP_EQUAL, value: AUDIT_ARCHITECTURE[machine], whenTrue: 1 },
    refuse(EPERM),
    load(NUMBER),
    ...(machine === "x64" ? [{ code: JUMP_AT_LEAST, value: X32_BIT, whenFalse: 1 }, refuse(EPERM)] : []),
    ...denied.flatMap((number) => forCall(number, [refuse(EPERM)])),
    ...forCall(CLONE3[machine], [refuse(ENOSYS)]),
    ...forCall(CLONE[machine], [
      load(argument(0)),
      { code: JUMP_ANY_BIT, value: NEW_NAMESPACES, whenFalse: 1 },
      refuse(EPERM),
      allow(),
    ]),
    ...forCall(SOCKET[machine], [
      load(argument(0)),
      { code: JUMP_EQUAL, value: AF_UNIX, whenFalse: 1 },
      refuse(EPERM),
      ...SOCKET_FAMILIES.flatMap((family) => [{ code: JUMP_EQUAL, value: family, whenFalse: 1 }, allow()]),
      refuse(EAFNOSUPPORT),
    ]),
    // A stream pair stays connected; a datagram pair could be reconnected to a socket outside.
    ...forCall(SOCKETPAIR[machine], [
      load(argument(0)),
      { code: JUMP_EQUAL, value: AF_UNIX, whenTrue: 1 },
      refuse(EAFNOSUPPORT),
      load(argument(1)),
      { code: AND, value: SOCKET_TYPE_MASK },
      { code: JUMP_EQUAL, value: SOCK_STREAM, whenTrue: 1 },
      refuse(EPERM),
      allow(),
    ]),
    ...forCall(IOCTL[machine], [
      load(argument(1)),
      { code: JUMP_EQUAL, value: TIOCSTI, whenTrue: 1 },
      { code: JUMP_EQUAL, value: TIOCLINUX, whenFalse: 1 },
      refuse(EPERM),
      allow(),
    ]),
    allow(),
  ]);
}

const load = (value: number): Instruction => ({ code: LOAD, value });
const allow = (): Instruction => ({ code: RETURN, value: ALLOW });
const refuse = (errno: number): Instruction => ({ code: RETURN, value: ERRNO | errno });

/** The body must not fall through: after it the call's number is no longer loaded. */
function forCall(number: number, body: readonly Instruction[]): Instruction[] {
  return [{ code: JUMP_EQUAL, value: number, whenFalse: body.length }, ...body];
}

/** `struct sock_filter { u16 code; u8 jt; u8 jf; u32 k; }` */
function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, { code, value, whenTrue = 0, whenFalse = 0 }] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(whenTrue, index * 8 + 2);
    bytes.writeUInt8(whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  }
  return bytes;
}
