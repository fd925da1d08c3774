// Marks of `!`: what a production run (`knip --production`) reads, which takes no test for a user.
// There an export that its own file uses is fine: it is exported for its test.

/** @type {import("knip").KnipConfig} */
export default {
  entry: [
    "src/cli/main.ts!",
    "src/web/page/{main,exported}.tsx!",
    "src/{runtime,protocol,sdk,server,testing}/index.ts!",
    "src/view/{view,blocks}.ts!",
    "scripts/*.mjs!",
    "scripts/reference/pages.ts!",
    "examples/*.ts!",
    "bench/*.{mjs,cjs}",
    "test/wire.types.ts",
    "test/support/first-look-fails.ts",
    "test/mutation/verdicts.ts",
    "test/**/*-program.ts",
  ],
  project: [
    "src/**/*.{ts,tsx}!",
    "!src/**/*.test.ts!",
    "test/**/*.ts",
    "bench/**/*.mjs",
    "scripts/**/*.{mjs,ts}!",
    "examples/*.ts!",
  ],
  ignoreDependencies: ["@vscode/ripgrep", "axe-core"],
  ignoreBinaries: ["ip", "mkfifo", "mount", "setpriv", "umount"],
  ignoreExportsUsedInFile: process.argv.includes("--production"),
};
