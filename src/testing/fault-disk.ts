/** Disks that fail on purpose, so that storage guarantees can be tested at every single operation. */
import type { Disk } from "../lib/node/disk.ts";

export type Operation = keyof Disk;

export type Fault =
  /** Fails once, or from then on until `plan.healed`. */
  | { readonly kind: "fail"; readonly code: string; readonly lasting?: boolean }
  /** Only the first bytes of a write arrive. `share` is their fraction, 0 to 1. Other operations just end. */
  | { readonly kind: "tear"; readonly share: number; readonly end: "fail" | "kill"; readonly code?: string }
  | { readonly kind: "delay"; readonly milliseconds: number }
  /** The process dies immediately before or after the operation. */
  | { readonly kind: "kill"; readonly when: "before" | "after" };

export interface FaultPlan {
  /** The number of the operation that fails; the first is 1. */
  readonly at: number;
  readonly fault: Fault;
  /** Counts only these operations. Default: all. */
  readonly operations?: readonly Operation[];
  /** Ends the process. A test can replace it. */
  readonly kill?: () => void;
  /** Set by the disk: whether the operation was reached. */
  fired?: boolean;
  /** Set by a test: ends a lasting fault. */
  healed?: boolean;
}

/** Behaves like `inner` until operation number `plan.at`, and then follows the plan. */
export function faultDisk(inner: Disk, plan: FaultPlan): Disk {
  let count = 0;
  return wrapDisk(inner, async (operation, run, tear) => {
    if (plan.operations && !plan.operations.includes(operation)) return await run();
    count++;
    const { fault } = plan;
    if (count > plan.at && fault.kind === "fail" && fault.lasting && !plan.healed && isHit(operation, fault.code)) {
      throw systemError(fault.code, operation);
    }
    if (count !== plan.at) return await run();
    plan.fired = true;
    return await strike({ operation, fault, run, tear, kill: plan.kill ?? killSelf });
  });
}

/** Records the operations of an action. */
export function countOperations(inner: Disk): { disk: Disk; operations: Operation[] } {
  const operations: Operation[] = [];
  const disk = wrapDisk(inner, (operation, run) => {
    operations.push(operation);
    return run();
  });
  return { disk, operations };
}

/** Routes every operation of a disk through one function. */
function wrapDisk(inner: Disk, around: Around): Disk {
  const plain = <A extends unknown[], T>(operation: Operation, call: (...values: A) => Promise<T>) => {
    return (...values: A): Promise<T> => around(operation, () => call(...values), nothing);
  };
  return {
    mkdir: plain("mkdir", inner.mkdir),
    openAppend: plain("openAppend", inner.openAppend),
    openExclusive: plain("openExclusive", inner.openExclusive),
    write: (fd, data) =>
      around(
        "write",
        () => inner.write(fd, data),
        (share) => inner.write(fd, data.subarray(0, Math.floor(data.length * share))),
      ),
    sync: plain("sync", inner.sync),
    syncDirectory: plain("syncDirectory", inner.syncDirectory),
    truncate: plain("truncate", inner.truncate),
    touch: inner.touch, // called by a timer, so it is not counted
    rename: plain("rename", inner.rename),
    link: plain("link", inner.link),
    makeRunnable: plain("makeRunnable", inner.makeRunnable),
    unlink: plain("unlink", inner.unlink),
    remove: plain("remove", inner.remove),
    close: plain("close", inner.close),
  };
}

type Around = <T>(operation: Operation, run: () => Promise<T>, tear: (share: number) => Promise<void>) => Promise<T>;

const nothing = async (): Promise<void> => {};

interface FaultedOperation<T> {
  operation: Operation;
  fault: Fault;
  run: () => Promise<T>;
  tear: (share: number) => Promise<void>;
  kill: () => void;
}

async function strike<T>({ operation, fault, run, tear, kill }: FaultedOperation<T>): Promise<T> {
  switch (fault.kind) {
    case "fail":
      // A descriptor is closed even if closing it reports an error.
      if (operation === "close") await run();
      throw systemError(fault.code, operation);
    case "tear":
      await tear(fault.share);
      if (operation === "close") await run();
      if (fault.end === "fail") throw systemError(fault.code ?? "EIO", operation);
      return await die(kill);
    case "delay":
      await new Promise((resolve) => setTimeout(resolve, fault.milliseconds));
      return await run();
    case "kill":
      if (fault.when === "after") await run();
      return await die(kill);
  }
}

/** A full disk fails operations that need space; a broken one fails all but closing. */
function isHit(operation: Operation, code: string): boolean {
  if (operation === "close") return false;
  return code !== "ENOSPC" || !["truncate", "unlink", "remove", "rename"].includes(operation);
}

function die(kill: () => void): Promise<never> {
  kill();
  return new Promise(() => {});
}

function killSelf(): void {
  process.kill(process.pid, "SIGKILL");
}

function systemError(code: string, operation: Operation): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: injected into ${operation}`), { code, syscall: operation });
}
