/**
 * Three builds from one source: the served page of a node (index.html and its assets), that of
 * many nodes (cluster.html), and export.html, one file that opens from disk with nothing beside it.
 */
import { resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const OUT = resolve(import.meta.dirname, "../src/nodescope/use/viewer/static");

/** By mode; what else there is belongs to the page of a node. Each page is built apart, so that none loads what it does not need. */
const INPUTS: Record<string, string> = { export: "export.html", cluster: "cluster.html" };

/** Puts every script and style into the page itself, and drops the files. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, item] of Object.entries(bundle)) {
        if (item.type === "chunk") script += item.code;
        else if (name.endsWith(".css")) style += String(item.source);
        if (!name.endsWith(".html")) delete bundle[name];
      }
      // A part that is shown later has nothing to fetch first: Vite's own step, which says so, comes after us.
      script = script.replaceAll("__VITE_PRELOAD__", "void 0");
      // A closing tag inside a string would end the element.
      const safe = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
      for (const item of Object.values(bundle)) {
        if (item.type !== "asset") continue;
        item.source = String(item.source)
          .replace(/<script type="module"[^>]*><\/script>\s*/g, "")
          .replace(/<link rel="(stylesheet|modulepreload)"[^>]*>\s*/g, "")
          .replace("</head>", () => `<style>${style}</style>\n</head>`)
          .replace("</body>", () => `<script type="module">${safe}</script>\n</body>`);
      }
    },
  };
}

export default defineConfig(({ mode }) => ({
  root: import.meta.dirname,
  base: "./",
  plugins: mode === "export" ? [oneFile()] : [],
  build: {
    outDir: OUT,
    emptyOutDir: !(mode in INPUTS),
    target: "es2022",
    // A data: address for a small file would ask for more than the page's CSP gives.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: resolve(import.meta.dirname, INPUTS[mode] ?? "index.html"),
      // One file has no others to load.
      output: mode === "export" ? { codeSplitting: false } : {},
    },
  },
  test: { environment: "node", include: ["tests/**/*.test.ts"] },
}));
