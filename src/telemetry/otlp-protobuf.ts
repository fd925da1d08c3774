/** Encodes the requests that `otlp-json` makes as bytes, by the field numbers of OTLP's protocol buffers. */
type Kind = "text" | "bytes" | "enum" | "bool" | "int64" | "fixed64" | "fixed32" | "double" | "fixed64s" | "doubles";
/** A field number with its encoding, or with the shape of its message. */
type Field = readonly [number: number, kind: Kind | Shape];
type Shape = { readonly [name: string]: Field };

const any: Shape = {
  stringValue: [1, "text"],
  boolValue: [2, "bool"],
  intValue: [3, "int64"],
  doubleValue: [4, "double"],
  arrayValue: [5, { values: [1, { stringValue: [1, "text"] }] }],
};
const attribute: Shape = { key: [1, "text"], value: [2, any] };
const about = { resource: [1, { attributes: [1, attribute] }] } as const;
const scope = { scope: [1, { name: [1, "text"], version: [2, "text"] }] } as const;

const span: Shape = {
  traceId: [1, "bytes"],
  spanId: [2, "bytes"],
  traceState: [3, "text"],
  parentSpanId: [4, "bytes"],
  name: [5, "text"],
  kind: [6, "enum"],
  startTimeUnixNano: [7, "fixed64"],
  endTimeUnixNano: [8, "fixed64"],
  attributes: [9, attribute],
  events: [11, { timeUnixNano: [1, "fixed64"], name: [2, "text"], attributes: [3, attribute] }],
  status: [15, { message: [2, "text"], code: [3, "enum"] }],
  flags: [16, "fixed32"],
};
const times = { startTimeUnixNano: [2, "fixed64"], timeUnixNano: [3, "fixed64"] } as const;
const metric: Shape = {
  name: [1, "text"],
  description: [2, "text"],
  unit: [3, "text"],
  gauge: [
    5,
    { dataPoints: [1, { timeUnixNano: [3, "fixed64"], asDouble: [4, "double"], attributes: [7, attribute] }] },
  ],
  sum: [
    7,
    {
      dataPoints: [1, { ...times, asInt: [6, "fixed64"], attributes: [7, attribute] }],
      aggregationTemporality: [2, "enum"],
      isMonotonic: [3, "bool"],
    },
  ],
  histogram: [
    9,
    {
      dataPoints: [
        1,
        {
          ...times,
          count: [4, "fixed64"],
          sum: [5, "double"],
          bucketCounts: [6, "fixed64s"],
          explicitBounds: [7, "doubles"],
          attributes: [9, attribute],
          min: [11, "double"],
          max: [12, "double"],
        },
      ],
      aggregationTemporality: [2, "enum"],
    },
  ],
};
const request: Shape = {
  resourceSpans: [1, { ...about, scopeSpans: [2, { ...scope, spans: [2, span] }] }],
  resourceMetrics: [1, { ...about, scopeMetrics: [2, { ...scope, metrics: [2, metric] }] }],
};

export function protobuf(value: object): Buffer {
  return message(value, request);
}

function message(value: object, shape: Shape): Buffer {
  const parts: Buffer[] = [];
  for (const [name, given] of Object.entries(value)) {
    const field = shape[name];
    if (!field) throw new Error(`${name} has no place in the message`);
    const [number, kind] = field;
    if (typeof kind === "object") {
      for (const one of Array.isArray(given) ? given : [given])
        parts.push(...delimitedField(number, message(one, kind)));
    } else parts.push(...scalar(number, kind, given));
  }
  return Buffer.concat(parts);
}

const VARINT = 0;
const EIGHT_BYTES = 1;
const DELIMITED = 2;
const FOUR_BYTES = 5;

function scalar(number: number, kind: Kind, value: unknown): Buffer[] {
  switch (kind) {
    case "text":
      return delimitedField(number, Buffer.from(String(value)));
    case "bytes":
      return delimitedField(number, Buffer.from(String(value), "hex"));
    case "enum":
    case "bool":
      return [tag(number, VARINT), varint(BigInt(Number(value)))];
    case "int64":
      return [tag(number, VARINT), varint(BigInt.asUintN(64, BigInt(String(value))))];
    case "fixed64":
      return [tag(number, EIGHT_BYTES), fixed64(value)];
    case "double":
      return [tag(number, EIGHT_BYTES), double(value)];
    case "fixed32": {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32LE(Number(value));
      return [tag(number, FOUR_BYTES), bytes];
    }
    case "fixed64s":
      return delimitedField(number, Buffer.concat((value as readonly unknown[]).map(fixed64)));
    case "doubles":
      return delimitedField(number, Buffer.concat((value as readonly unknown[]).map(double)));
  }
}

function delimitedField(number: number, content: Buffer): Buffer[] {
  return [tag(number, DELIMITED), varint(BigInt(content.length)), content];
}

const tag = (number: number, wireType: number): Buffer => varint(BigInt((number << 3) | wireType));

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function fixed64(value: unknown): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(String(value))));
  return bytes;
}

function double(value: unknown): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(Number(value));
  return bytes;
}
