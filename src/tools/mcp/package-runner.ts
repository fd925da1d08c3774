/** Commands that install a package before they run it. The first start takes as long as the download. */
import { basename } from "node:path";
import type { McpServerConfig } from "./server.ts";

const RUNNERS = ["npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uv", "uvx", "pipx", "deno"];

/** Maximum silence of a package runner at the start, whatever `timeout` says. */
const INSTALL_MS = 180_000;

export function isPackageRunner({ transport }: McpServerConfig): boolean {
  if (transport.type !== "stdio") return false;
  return RUNNERS.includes(basename(transport.command).replace(/\.(cmd|exe)$/i, ""));
}

/** Returns the time limit for connecting. */
export function connectMs(config: McpServerConfig, installMs: number = INSTALL_MS): number {
  return isPackageRunner(config) ? Math.max(config.timeoutMs, installMs) : config.timeoutMs;
}
