/**
 * Two builds from one source: the served page (index.html and its assets) and
 * export.html, one file that opens from disk with nothing beside it.
 */
import { resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const OUT = resolve(import.meta.dirname, "../src/nodescope/use/viewer/static");

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
    emptyOutDir: mode !== "export",
    target: "es2022",
    // A data: address for a small file would ask for more than the page's CSP gives.
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: {
      input: resolve(import.meta.dirname, mode === "export" ? "export.html" : "index.html"),
    },
  },
  test: { environment: "node", include: ["tests/**/*.test.ts"] },
}));
