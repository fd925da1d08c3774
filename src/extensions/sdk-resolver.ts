/** How the module of an extension finds the SDK by its name, though nobody has installed it there. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";

const PACKAGE = "@github/copilot-sdk";

/** The folder with the modules of the SDK: the one that was named, else what is installed beside the extension or beside us. */
export function sdkFolder(named: string | undefined, extension: string): string | undefined {
  if (named !== undefined && isSdk(named)) return named;
  return installedNear(join(extension, "any.js")) ?? installedNear(import.meta.url);
}

/** For `node --import`: from then on both names of the SDK lead to this folder. */
export function resolverModule(folder: string): string {
  const modules = {
    [PACKAGE]: pathToFileURL(join(folder, "index.js")).href,
    [`${PACKAGE}/extension`]: pathToFileURL(join(folder, "extension.js")).href,
  };
  // Where hooks run in a thread of their own they are a module of their own.
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

/** Returns the outermost `node_modules` folder around the SDK, which has its dependencies, or else the SDK's own folder. */
export function packagesAround(sdk: string): string {
  const marker = `${sep}node_modules${sep}`;
  const at = sdk.indexOf(marker);
  return at < 0 ? sdk : sdk.slice(0, at + marker.length - 1);
}

type Resolve = (specifier: string, context: unknown, next: (specifier: string, context: unknown) => unknown) => unknown;

/** Runs in the process of the extension; knows nothing but its argument. */
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
    // Asked like this it names the older form of its modules, which lies below the other.
    return [dirname(dirname(entry)), dirname(entry)].find(isSdk);
  } catch {
    return undefined;
  }
}
