// Loaded with --require before a measured program: on exit it writes what the process used to BENCH_USAGE_FILE.
// A hook inside the process is the one way to get exact figures that needs no other tool: a parent that polls /proc
// misses the last moments. CommonJS, so that it does not make Node load the machinery for ES modules.
"use strict";
const { readFileSync, writeFileSync } = require("node:fs");

process.on("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage = { cpuMs: (userCPUTime + systemCPUTime) / 1000, peakBytes: maxRSS * 1024 };
  try {
    // On Linux maxRSS begins with what the parent had at the time of the fork; VmHWM is this program's own.
    usage.peakBytes = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "latin1"))[1]) * 1024;
    // Times of children it has waited for, in hundredths of a second.
    const fields = readFileSync("/proc/self/stat", "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    usage.cpuMs += (Number(fields[13]) + Number(fields[14])) * 10;
  } catch {
    // Not Linux.
  }
  writeFileSync(process.env.BENCH_USAGE_FILE, JSON.stringify(usage));
});
