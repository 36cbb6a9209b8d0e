// Fails when the JavaScript of the first page outgrows its budget.
import { readFileSync, statSync } from "node:fs";

const FOLDER = "../src/tollhouse/console/static/";
const GZIPPED_BYTES_MAX = 250_000;

const manifest = JSON.parse(readFileSync(`${FOLDER}.vite/manifest.json`, "utf8"));
const needed = new Set();

function need(name) {
  if (needed.has(name)) return;
  needed.add(name);
  for (const imported of manifest[name].imports ?? []) need(imported);
}

need("index.html");
let bytes = 0;
for (const name of needed) bytes += statSync(`${FOLDER}${manifest[name].file}.gz`).size;
process.stdout.write(`first page: ${bytes} of at most ${GZIPPED_BYTES_MAX} bytes, gzipped\n`);
process.exitCode = bytes <= GZIPPED_BYTES_MAX ? 0 : 1;
