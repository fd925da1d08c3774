import { fileURLToPath } from "node:url";

/** The folder of the dashboard's page. The build puts it beside the command line. */
export const pageFolder = (): string => fileURLToPath(new URL("../web", import.meta.url));
