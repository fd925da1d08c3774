// Preloaded into a worker by `--require`: faults at an exact statement, without a seam in the program. The variable
// SEAM is JSON:
//   { "killAtAppend": n, "after": bool }  SIGKILL at the n-th append, before it is sent or after it was answered
//   { "killAtLine": text, "once": file }  SIGKILL when a line with this text was stored, unless the file exists
//   { "stopAtCall": token, "once": file } SIGSTOP when a call with this text is stored as allowed, which is the last
//                                         statement before its effect, unless the file exists
//   { "stopAtQuery": text, "once": file } SIGSTOP before a statement with this text is sent, unless the file exists
//   { "delayMs": n }                      after waking, the answer arrives this much later
//   { "deafMs": n }                       after waking, appends are sent this much later: only the lease can stop the call
//   { "clockMs": [n, …] }                 Date is off by the first of these, and by the next one after each SIGUSR2
//   { "rewrite": [[find, replace], …] }   defect: statements with this text are changed
const { openSync } = require("node:fs");
const { Client } = require("pg");

const seam = JSON.parse(process.env.SEAM ?? "{}");
const send = Client.prototype.query;
if (seam.clockMs) setClock(seam.clockMs);
let appends = 0;
let deafUntil = 0;

Client.prototype.query = function (text, values, callback) {
  if (typeof text !== "string") return send.call(this, text, values, callback);
  const isAppend = text.includes("insert into troupe.event");
  let sql = text;
  for (const [find, replace] of seam.rewrite ?? []) sql = sql.replace(find, replace);
  if (isAppend && performance.now() < deafUntil) {
    return new Promise((resolve) => setTimeout(resolve, seam.deafMs)).then(() => this.query(text, values, callback));
  }
  if (seam.stopAtQuery && text.includes(seam.stopAtQuery) && isFirst()) stop();
  const isLast = isAppend && ++appends === seam.killAtAppend;
  if (isLast && !seam.after) process.kill(process.pid, "SIGKILL");
  const react = () => {
    if (isLast || (isAppend && hasLine(values) && isFirst())) process.kill(process.pid, "SIGKILL");
    return isAppend && seam.stopAtCall && isBeforeEffect(values) && isFirst() ? stop() : 0;
  };
  if (typeof callback === "function") {
    return send.call(this, sql, values, (...results) => later(react(), () => callback(...results)));
  }
  const sent = send.call(this, sql, values, callback);
  if (typeof sent?.then !== "function") return sent;
  return sent.then((result) => new Promise((resolve) => later(react(), () => resolve(result))));
};

const later = (ms, work) => (ms > 0 ? setTimeout(work, ms) : work());
let callId = "none";

const hasLine = (values) => seam.killAtLine && values[6].some((line) => line.includes(seam.killAtLine));

/** Whether this append stored the permission of the wanted call. */
function isBeforeEffect([, , , , , , lines]) {
  return lines.some((line) => {
    const { type, data } = JSON.parse(line);
    if (type === "tool.execution_start" && line.includes(seam.stopAtCall)) callId = data.toolCallId;
    return type === "troupe.permission" && data.toolCallId === callId;
  });
}

function isFirst() {
  try {
    openSync(seam.once, "wx");
    return true;
  } catch {
    return false;
  }
}

/** Returns the delay for the answer. The signal takes a moment, so the thread waits for it. */
function stop() {
  process.kill(process.pid, "SIGSTOP");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  deafUntil = performance.now() + (seam.deafMs ?? 0) + (seam.delayMs ?? 0);
  return seam.delayMs ?? 0;
}

function setClock([first, ...later]) {
  const Real = Date;
  let off = first;
  const now = () => Real.now() + off;
  const construct = (target, given, as) => Reflect.construct(target, given.length > 0 ? given : [now()], as);
  const get = (target, name) => (name === "now" ? now : Reflect.get(target, name));
  globalThis.Date = new Proxy(Real, { construct, get });
  process.on("SIGUSR2", () => {
    off = later.shift() ?? off;
  });
}
