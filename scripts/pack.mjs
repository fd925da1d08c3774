// Packs: scripts that hold modules as functions, each run when something of its module is first used. In a bundle every
// import runs what it names, so a start runs everything; here an import only says where to look. So it costs a start
// nothing that a module exists, and V8's code cache holds nothing that a start does not run.
//
// This rests on two rules of the house: modules do nothing but define, and none is imported for its effects. What the
// packer does not understand stops the build.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Every module behind the entry as the body of a function of `exports`: ours by path, packages by name. `bodies` are
 * given for some.
 */
export async function modulesBehind(entry, { esbuild, root, options, bodies = new Map() }) {
  const { metafile } = await esbuild.build({
    ...options,
    entryPoints: [entry],
    outdir: "unused",
    format: "esm",
    splitting: true,
    packages: "external",
    metafile: true,
    write: false,
  });
  const modules = new Map();
  /** What is used of each package, by the path in it; `*` where that cannot be known. */
  const packages = new Map();
  for (const name of Object.keys(metafile.inputs)) {
    const source = readFileSync(join(root, name), "utf8");
    const body = name.endsWith(".md") ? textBody(source) : bodies.get(name);
    modules.set(name, body ?? (await codeBody(source, { esbuild, options, context: { name, packages } })));
  }
  for (const [name, used] of packages) modules.set(name, await packageBody(used, { esbuild, root, options }));
  return new Map([...modules].map(([name, body]) => [name, ascii(body)]));
}

/** Returns how a pack that holds the module `name` with this source defines it. */
export async function definitionOf(name, source, { esbuild, options }) {
  const body = await codeBody(source, { esbuild, options, context: { name, packages: new Map() } });
  return definition(name, ascii(body));
}

/** The first pack: runs the entry and returns its exports. `later` are packs that are asked, in order, for the rest. */
export function startPack(modules, { names, entry, later }) {
  return `(function(require,open,$url){"use strict";const $link=(${link})(require,open,$url,${JSON.stringify(later)});${SCOPE};$link.define(${definitions(modules, names)});return $use(${JSON.stringify(entry)})\n})`;
}

export function laterPack(modules, names) {
  return `(function(require,$url,$link){"use strict";${SCOPE};return ${definitions(modules, names)}\n})`;
}

/** What modules see beside their own. */
const SCOPE = "const{__export,__toESM,$use,$names,$uuid,$now}=$link";

function definitions(modules, names) {
  return `{${names.map((name) => definition(name, modules.get(name))).join(",\n")}}`;
}

const definition = (name, body) => `${JSON.stringify(name)}:function(exports){${body}\n}`;

/** What runs in the packs; its text becomes part of the first. */
function link(require, open, $url, later) {
  const definitions = {};
  const made = new Map();
  const waiting = later.map(open);
  const __export = (target, all) => {
    for (const name in all) Object.defineProperty(target, name, { get: all[name], enumerable: true });
  };
  /** A package from outside, as `import()` would give it. */
  const __toESM = (exports) => (exports.__esModule ? exports : { ...exports, default: exports });
  const $use = (name) => {
    const known = made.get(name);
    if (known) return known;
    while (!(name in definitions)) Object.assign(definitions, waiting.shift()()(require, $url, $link));
    const exports = {};
    made.set(name, exports);
    definitions[name](exports);
    return exports;
  };
  /** A package as a namespace, looked up when one of its names is used. */
  const $names = (name, names) => {
    const namespace = {};
    for (const each of names) Object.defineProperty(namespace, each, { get: () => $use(name)[each] });
    return namespace;
  };
  const $link = {
    ...{ __export, __toESM, $use, $names },
    define: (all) => Object.assign(definitions, all),
    // To name the web's objects for these loads parts of Node that cost a start 2 ms.
    $uuid: () => require("node:crypto").randomUUID(),
    $now: () => process.uptime() * 1000,
  };
  return $link;
}

const textBody = (text) => `exports.default=${JSON.stringify(text)};`;

async function codeBody(source, { esbuild, options, context }) {
  if (/\bimport_\w/.test(source)) throw misfit(context, "a name that begins with import_");
  const { code } = await esbuild.transform(source, {
    loader: "ts",
    format: "cjs",
    platform: "node",
    target: options.target,
    define: { ...options.define, "import.meta.url": "$url" },
    supported: { "dynamic-import": false }, // code that runs from a script object can require, but not import
  });
  const at = { ...context, external: options.external };
  const lazy = withLazyImports(withoutPreamble(code, context), at);
  const body = lazy.replace(/__toESM\(require\("([^"]+)"\)\)/g, (_, specifier) => located(specifier, ["*"], at));
  const odd = /\brequire\("\..*|__reExport.*|__copyProps.*|\bmodule\.exports.*/.exec(body);
  if (odd) throw misfit(context, odd[0]);
  const cheap = body.replace(/(?<![\w$.])(?:crypto\.randomUUID|performance\.now)\b/g, (name) => CHEAP[name]);
  const { code: small } = await esbuild.transform(cheap, { minifySyntax: true, minifyWhitespace: true });
  return small;
}

const CHEAP = { "crypto.randomUUID": "$uuid", "performance.now": "$now" };

/** Leaves out esbuild's helpers, which the packs share, and its note on names for Node. */
function withoutPreamble(code, context) {
  const [, body] = code.split("\nvar stdin_exports = {};\n");
  if (body === undefined) throw misfit(context, "no exports");
  return body
    .replace(/\/\/ Annotate the CommonJS export names for ESM import in node:\n.*$/s, "")
    .replace("__export(stdin_exports, ", "__export(exports, ")
    .replace("module.exports = __toCommonJS(stdin_exports);\n", "");
}

/** `import_x.name` becomes "x, found now if it was not before, and its name". */
function withLazyImports(body, context) {
  const found = [...body.matchAll(/^var (\w+) = (?:__toESM\()?require\("([^"]+)"\)(?:, 1)?\)?;\n/gm)];
  let code = body;
  const declared = found.map(([line, variable, specifier]) => {
    code = code.replace(line, "");
    const used = [...new Set([...code.matchAll(new RegExp(`\\b${variable}\\.(\\w+)`, "g"))].map(([, name]) => name))];
    if (used.length === 0) throw misfit(context, `an import of ${specifier} for its effects, or as a whole`);
    const place = located(specifier, used, context);
    if (variable.startsWith("import_")) {
      code = code.replace(new RegExp(`\\b${variable}\\b`, "g"), () => `(${variable} ??= ${place})`);
      return `var ${variable};`;
    }
    const name = packageOf(specifier);
    const isPackage = context.packages.has(name);
    return `var ${variable} = ${isPackage ? `$names(${JSON.stringify(name)}, ${JSON.stringify(used)})` : place};`;
  });
  return `${declared.join("\n")}\n${code}`;
}

function located(specifier, used, { name: importer, packages, external }) {
  const quoted = JSON.stringify(specifier);
  // Imports of our own name the file exactly.
  if (specifier.startsWith(".")) return `$use(${JSON.stringify(join(dirname(importer), specifier))})`;
  if (specifier.startsWith("node:")) return `require(${quoted})`;
  if (external.includes(specifier)) return `__toESM(require(${quoted}))`;
  const name = packageOf(specifier);
  const paths = packages.get(name) ?? new Map();
  packages.set(name, paths.set(specifier, new Set([...(paths.get(specifier) ?? []), ...used])));
  return `$use(${JSON.stringify(name)})`;
}

/** Paths in a package share one body, so that they share the state of its modules. */
const packageOf = (specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)[0];

/** One of our dependencies with everything it needs, and of it no more than is used. */
async function packageBody(paths, { esbuild, root, options }) {
  const contents = [...paths].map(([path, used]) => {
    const names = used.has("*") ? "*" : `{${[...used].join(",")}}`;
    return `export ${names} from ${JSON.stringify(path)}`;
  });
  const { outputFiles } = await esbuild.build({
    ...options,
    stdin: { contents: contents.join("\n"), resolveDir: root },
    format: "cjs",
    minifySyntax: true,
    minifyWhitespace: true,
    write: false,
  });
  return `const module={exports};${outputFiles[0].text};Object.assign(exports,module.exports);`;
}

/** Regular expressions stay as they are written; an escape means the same in them, in strings and in templates. */
function ascii(code) {
  return code.replace(/[^\u0000-\u007f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const misfit = ({ name }, what) => new Error(`pack: ${name} has ${what}, which packs do not hold`);
