// Reads wallet links with the parsers that wallets are built from: a JSON list of links in, of their readings out.
//
// argv: the bundles of bip21, eth-url-parser, @solana/pay and @solana/kit. What bip21 needs of another package is a
// query's parts; what @solana/pay needs is kit's check of an address.
const { readFileSync } = require("node:fs");

const [bip21Path, ethereumPath, payPath, kitPath] = process.argv.slice(2);
globalThis.isSecureContext = true;
const kit = new Function(`${readFileSync(kitPath, "utf8")}; return globalThis.solanaWeb3;`)();
const queryString = { default: { parse: (query) => Object.fromEntries(new URLSearchParams(query)) } };

function loaded(path, packages) {
  const module = { exports: {} };
  const find = (name) => packages[name] || (name === "util" ? require("node:util") : {});
  new Function("module", "exports", "require", readFileSync(path, "utf8"))(module, module.exports, find);
  return module.exports;
}

const bip21 = loaded(bip21Path, { "query-string": queryString });
const ethereum = loaded(ethereumPath, {});
const pay = loaded(payPath, { "@solana/kit": kit });

const READERS = {
  "bitcoin:": (link) => {
    const { address, options } = bip21.decode(link);
    return { address, amount: options.amount, parameters: Object.keys(options) };
  },
  "ethereum:": (link) => ethereum.parse(link),
  "solana:": (link) => {
    const { recipient, amount, splToken } = pay.parseURL(link);
    return { address: recipient, amount, token: splToken || null };
  },
};

const links = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(links.map((link) => READERS[new URL(link).protocol](link))));
