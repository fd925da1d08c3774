/** The options of esbuild that every part of the program is built with. `root`: the checkout. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export function buildOptions(root) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return {
    absWorkingDir: root,
    bundle: true,
    platform: "node",
    target: "node20.19",
    loader: { ".md": "text" },
    define: { __TROUPE_VERSION__: JSON.stringify(version) },
    external: [
      "@photostructure/sqlite",
      "@vscode/ripgrep",
      "@lydell/node-pty",
      "@modelcontextprotocol/client",
      "@modelcontextprotocol/server",
      "@dbos-inc/dbos-sdk",
      "pg",
    ],
    legalComments: "none",
    logLevel: "warning",
    charset: "ascii", // so that the launcher may read it as latin1, which is four times as fast
  };
}
