/** Put in by the build. */
declare const __TROUPE_VERSION__: string | undefined;
