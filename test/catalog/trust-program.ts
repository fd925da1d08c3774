/** Runs in a process of its own: `<stateRoot> <folder> <id>` records trust in the folder with one item. */
import { digestOf } from "../../src/catalog/pins.ts";
import { recordTrust } from "../../src/catalog/trust.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";

const [stateRoot = "", folder = "", id = ""] = process.argv.slice(2);
const items = [{ kind: "hook" as const, id, digest: digestOf(id), shown: id }];
await recordTrust({ stateRoot, folder, items, disk: nodeDisk, stamp: systemStamp });
