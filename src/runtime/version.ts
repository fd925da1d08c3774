/** The package version, inserted by the build. A run from source has none. */
export const version: string = typeof __TROUPE_VERSION__ === "string" ? __TROUPE_VERSION__ : "0.0.0-source";
