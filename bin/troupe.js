#!/usr/bin/env node
// The launcher: answers --version from package.json without loading anything, otherwise runs the packs in dist/cli from
// V8's code cache where there is one for this Node.
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
if (!((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 23)) {
  process.stderr.write(
    `troupe: needs Node 20.19, or 22.12 and later; this is ${process.versions.node}. Install a newer Node.\n`,
  );
  process.exit(2);
}
const { closeSync, openSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");

process.stdout.on("error", () => {
  process.exitCode ||= 1; // the command says why, where there is more to say
});
const folder = join(__dirname, "..", "dist", "cli");
const [first] = process.argv.slice(2);
if (process.argv.length === 3 && (first === "--version" || first === "-v")) {
  process.stdout.write(`${JSON.parse(readFileSync(join(__dirname, "..", "package.json"), "utf8")).version}\n`);
} else {
  run();
}

function run() {
  const first = firstFrame();
  const caches = [];
  let start;
  try {
    start = pack("start", caches);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    process.stderr.write("troupe: the build is missing; run `npm ci` (or `npm run build`) in the package folder\n");
    process.exitCode = 2;
    return;
  }
  const file = join(folder, "start.cjs");
  const { createRequire } = require("node:module");
  const { pathToFileURL } = require("node:url");
  const { main } = start()(createRequire(file), (name) => pack(name, caches), pathToFileURL(file).href);
  // Code that runs from a script object cannot import modules itself.
  main({ importModule: (specifier) => import(specifier), first }).then(() => {
    for (const { script, cacheFile, isKept } of caches) if (!isKept) writeCache(cacheFile, script.createCachedData());
    // All is said and on disk: what Node would still wait for (idle connections) is of no use to anyone.
    process.stdout.write("", () => process.exit());
  });
}

/** `troupe` alone opens the terminal: its prompt is painted before anything else is read. */
function firstFrame() {
  const { stdin, stdout, env } = process;
  const isAlone = process.argv.length === 2 || (process.argv.length === 3 && first === "--continue");
  if (!isAlone || !stdin.isTTY || !stdout.isTTY || env.TERM === "dumb" || env.TROUPE_SCREEN_READER === "1") return;
  try {
    return require(join(folder, "first-frame.cjs")).firstFrame(stdin, stdout);
  } catch {
    return undefined; // The build is missing, or older: the command paints it, or says so.
  }
}

/** Opened at once, so that it is still there after an update in place; read when it is needed. */
function pack(name, caches) {
  const file = join(folder, `${name}.cjs`);
  const descriptor = openSync(file);
  return () => {
    const { Script } = require("node:vm");
    const source = readFileSync(descriptor, "latin1"); // the build writes nothing but ASCII
    closeSync(descriptor);
    const cacheFile = join(folder, `${name}.${process.version}-${process.arch}.cache`);
    let cachedData;
    try {
      cachedData = readFileSync(cacheFile);
    } catch {
      // No cache for this Node: it only costs time.
    }
    const script = new Script(source, { filename: file, cachedData });
    caches.push({ script, cacheFile, isKept: cachedData ? !script.cachedDataRejected : !fillsCache() });
    return script.runInThisContext();
  };
}

/** Any other command would leave a cache without what a prompt needs, and code that counts what runs is other code. */
function fillsCache() {
  if (process.env.NODE_V8_COVERAGE) return false;
  return process.argv.some((word) => word === "-p" || word === "--prompt" || word.startsWith("--prompt="));
}

function writeCache(file, data) {
  try {
    // Others may be reading it.
    writeFileSync(`${file}.${process.pid}`, data);
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // A read-only installation runs without.
  }
}
