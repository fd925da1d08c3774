// Says at once, and in words, when Node is too old.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 23;
if (!fits) {
  console.error(`troupe needs Node ^20.19 or >=22.12; this is ${process.versions.node}`);
  process.exit(1);
}
