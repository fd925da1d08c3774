// Loaded into the server with --require: the time of an event carries the monotonic clock behind its milliseconds
// (`….123` + nanoseconds in 18 digits + `Z`), so that whoever hears it can tell how long ago it was made.
const toISOString = Date.prototype.toISOString;

Date.prototype.toISOString = function fine() {
  return `${toISOString.call(this).slice(0, -1)}${String(process.hrtime.bigint()).padStart(18, "0")}Z`;
};
