/** The entry point `troupe/server`: a server inside your own program. */
export { type InProcessOptions, inProcess } from "./in-process.ts";
