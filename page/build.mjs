// Bundles the page into the folder that the Python package serves and puts into static pages; --tests bundles the unit tests.
import { build } from "esbuild";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "eligo", "pages", "built");
const common = { bundle: true, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning", absWorkingDir: here };

async function page() {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  // A classic script: it runs the same whether it is served or written into a file that is opened from a disk.
  await build({
    ...common,
    entryPoints: ["src/main.tsx"],
    outfile: join(target, "page.js"),
    format: "iife",
    target: ["es2021"],
    minify: true,
    charset: "utf8",
    legalComments: "none",
  });
  writeFileSync(join(target, "index.html"), readFileSync(join(here, "src", "index.html")));
  let total = 0;
  for (const name of ["index.html", "page.js", "page.css"]) {
    const zipped = gzipSync(readFileSync(join(target, name)), { level: 9 });
    writeFileSync(join(target, `${name}.gz`), zipped);
    const size = zipped.length;
    total += size;
    console.log(`${name.padEnd(12)} ${(size / 1000).toFixed(1).padStart(6)} kB gzipped`);
  }
  console.log(`${"whole".padEnd(12)} ${(total / 1000).toFixed(1).padStart(6)} kB gzipped`);
  if (total > 300_000) throw new Error("the page is larger than 300 kB");
}

async function tests() {
  const folder = join(here, "build");
  rmSync(folder, { recursive: true, force: true });
  const names = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: names.map((name) => join("tests", name)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    format: "esm",
    platform: "node",
  });
}

await (process.argv.includes("--tests") ? tests() : page());
