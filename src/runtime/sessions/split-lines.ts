/** Lines of a log for commands, which cannot reach the store. */
export { splitLines } from "../../store/log/exact-lines.ts";
