import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig } from "vitest/config";

// What the gateway serves. It is part of the wheel, and of no commit.
const OUT_DIR = "../src/tollhouse/console/static";
// What a machine that stands still for a while must not exceed: no test waits for it to pass.
const PATIENCE_MS = 120_000;

/** Compressed here once, so that no gateway spends time on it, and stored only so. */
function compress(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/\.(js|css|html|svg)$/.test(entry)) continue;
    const path = join(folder, entry);
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
    rmSync(path);
  }
}

export default defineConfig({
  base: "/console/",
  plugins: [{ name: "compress", apply: "build", closeBundle: () => compress(OUT_DIR) }],
  build: {
    outDir: OUT_DIR,
    emptyOutDir: true,
    target: "es2023",
    // A file written into another as a data: URL would be refused by the Content-Security-Policy.
    assetsInlineLimit: 0,
    manifest: true,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8080", "/manage": "http://127.0.0.1:8080" } },
  test: {
    testTimeout: PATIENCE_MS,
    hookTimeout: PATIENCE_MS,
    projects: [
      { extends: true, test: { name: "unit", include: ["src/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "walk",
          include: ["e2e/**/*.test.ts"],
          globalSetup: "e2e/gateway.ts",
          fileParallelism: false,
          isolate: false,
        },
      },
    ],
  },
});
