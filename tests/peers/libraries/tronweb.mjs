// Answers one line of JSON with another: what tronweb makes of a transaction, a key or a chain. Started by library.py.
//
// argv: the library's own bundle, which was made for a browser.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { argv, stdin, stdout } from "node:process";

globalThis.self = globalThis;
const { TronWeb, utils } = createRequire(import.meta.url)(argv[2]);
const { Transaction } = globalThis.TronWebProto;
// Only its parts that ask no node are used of this one.
const offline = new TronWeb({ fullHost: "http://127.0.0.1:9" });
// What nodes write of each contract's kind.
const KINDS = { 1: "TransferContract", 31: "TriggerSmartContract" };
const TOKEN = [
  {
    type: "function", name: "transfer", stateMutability: "nonpayable",
    inputs: [{ name: "to", type: "address" }, { name: "units", type: "uint256" }],
    outputs: [{ name: "", type: "bool" }],
  },
  {
    type: "function", name: "balanceOf", stateMutability: "view",
    inputs: [{ name: "holder", type: "address" }],
    outputs: [{ name: "", type: "uint256" }],
  },
];
const TRANSFER = ["address", "uint256"];
const SELECTOR_DIGITS = 8;

const hex = (bytes) => Buffer.from(bytes).toString("hex");

// A transaction as bytes, read, built anew from what was read, and its signer found.
function read({ whole }) {
  const transaction = Transaction.deserializeBinary(Buffer.from(whole, "hex"));
  const raw = hex(transaction.getRawData().serializeBinary());
  const kind = KINDS[transaction.getRawData().getContractList()[0].getType()];
  const raw_data = utils.deserializeTx.deserializeTransaction(kind, raw);
  const rebuilt = utils.transaction.txJsonToPb({ raw_data });
  const txid = utils.transaction.txPbToTxID(rebuilt).replace("0x", "");
  const [signature] = transaction.getSignatureList_asU8().map(hex);
  const recovered = utils.crypto.ecRecover(txid, signature);
  return {
    txid, raw_data, signature,
    raw: utils.transaction.txPbToRawDataHex(rebuilt).toLowerCase(),
    signer: TronWeb.address.fromHex(recovered),
    call: called(raw_data.contract[0].parameter.value.data),
  };
}

// Whom a token's transfer pays, and how much.
function called(data) {
  if (!data) return null;
  const { to, units } = utils.abi.decodeParams(["to", "units"], TRANSFER, `0x${data.slice(SELECTOR_DIGITS)}`);
  return { selector: data.slice(0, SELECTOR_DIGITS), to: TronWeb.address.fromHex(to), units: String(units) };
}

// The signature that somebody else's code gives the same transaction.
function sign({ key, whole }) {
  const { txid, raw_data, raw } = read({ whole });
  return utils.crypto.signTransaction(key, { txID: txid, raw_data, raw_data_hex: raw, signature: [] }).signature[0];
}

const address = ({ key }) => {
  const base58 = TronWeb.address.fromPrivateKey(key);
  const digits = TronWeb.address.toHex(base58);
  return { base58, hex: digits, again: TronWeb.address.fromHex(digits) };
};

const derive = ({ words, path }) => {
  const found = TronWeb.fromMnemonic(words, path);
  return { address: found.address, key: found.privateKey.replace("0x", "") };
};

const at = (url, key) => new TronWeb({ fullHost: url, privateKey: key });

const pay = async ({ url, key, to, units }) => at(url, key).trx.sendTransaction(to, units);

const payToken = async ({ url, key, token, to, units }) =>
  at(url, key).contract(TOKEN, token).transfer(to, units).send({ feeLimit: 100_000_000 });

const held = async ({ url, key, token, of }) => String(await at(url, key).contract(TOKEN, token).balanceOf(of).call());

const send = async ({ url, whole }) => at(url).trx.sendHexTransaction(whole);

const balance = async ({ url, of }) => at(url).trx.getBalance(of);

const isAddress = ({ text }) => offline.isAddress(text);

const ANSWERS = { read, sign, address, derive, pay, payToken, held, send, balance, isAddress };

for await (const line of createInterface({ input: stdin })) {
  const asked = JSON.parse(line);
  let told;
  try {
    told = { result: await ANSWERS[asked.what](asked) };
  } catch (error) {
    told = { error: String(error?.stack ?? error) };
  }
  stdout.write(`${JSON.stringify(told)}\n`);
}
