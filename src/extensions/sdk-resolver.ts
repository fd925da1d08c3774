/** Lets an extension's module import the SDK by name when it is not installed there. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";

const PACKAGE = "@github/copilot-sdk";

/** Returns the SDK's folder: the named one, or one installed beside the extension or beside troupe. */
export function sdkFolder(named: string | undefined, extension: string): string | undefined {
  if (named !== undefined && isSdk(named)) return named;
  return installedNear(join(extension, "any.js")) ?? installedNear(import.meta.url);
}

/** Returns a module for `node --import` that resolves both names of the SDK to this folder. */
export function resolverModule(folder: string): string {
  const modules = {
    [PACKAGE]: pathToFileURL(join(folder, "index.js")).href,
    [`${PACKAGE}/extension`]: pathToFileURL(join(folder, "extension.js")).href,
  };
  // Node versions without `registerHooks` run hooks in their own thread, as a separate module.
  const threaded = `export ${resolveIn.toString()}\nexport const resolve = resolveIn(${JSON.stringify(modules)});`;
  const text = [
    'import * as module from "node:module";',
    resolveIn.toString(),
    `const resolve = resolveIn(${JSON.stringify(modules)});`,
    "if (module.registerHooks) module.registerHooks({ resolve });",
    `else module.register(${JSON.stringify(asAddress(threaded))});`,
  ].join("\n");
  return asAddress(text);
}

/** Returns the outermost `node_modules` folder around the SDK, which has its dependencies, or else the SDK's folder. */
export function packagesAround(sdk: string): string {
  const marker = `${sep}node_modules${sep}`;
  const at = sdk.indexOf(marker);
  return at < 0 ? sdk : sdk.slice(0, at + marker.length - 1);
}

type Resolve = (specifier: string, context: unknown, next: (specifier: string, context: unknown) => unknown) => unknown;

/** Runs in the extension's process, so it must not refer to anything but its argument. */
function resolveIn(modules: Readonly<Record<string, string>>): Resolve {
  return (specifier, context, next) => {
    const url = modules[specifier];
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  };
}

const asAddress = (text: string): string => `data:text/javascript,${encodeURIComponent(text)}`;

const isSdk = (folder: string): boolean =>
  existsSync(join(folder, "extension.js")) && existsSync(join(folder, "index.js"));

function installedNear(module: string): string | undefined {
  try {
    const entry = createRequire(module).resolve(`${PACKAGE}/extension`);
    // `require` resolves to the CommonJS build, which is in a folder below the ES modules.
    return [dirname(dirname(entry)), dirname(entry)].find(isSdk);
  } catch {
    return undefined;
  }
}
