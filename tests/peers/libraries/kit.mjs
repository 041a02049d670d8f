// Answers one line of JSON with another: what @solana/kit makes of a transaction, a key or a chain. Started by library.py.
//
// argv: the library's own bundle, which was made for a browser.
import { createInterface } from "node:readline";
import { argv, stdin, stdout } from "node:process";
import { readFileSync } from "node:fs";

// A browser offers its cryptography only to pages that came over TLS.
globalThis.isSecureContext = true;
const kit = new Function(`${readFileSync(argv[2], "utf8")}; return globalThis.solanaWeb3;`)();
const SYSTEM = "11111111111111111111111111111111";
const TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const ASSOCIATED = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
const READS = 0, WRITES = 1, SIGNS = 2, SIGNS_AND_WRITES = 3;

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const raw = (text) => new Uint8Array(Buffer.from(text, "hex"));
const opened = (whole) => kit.getTransactionDecoder().decode(raw(whole));
const signer = (key) => kit.createKeyPairSignerFromPrivateKeyBytes(raw(key));

// A transaction as bytes, read, built again from its parts, and its signatures checked.
async function read({ whole }) {
  const transaction = opened(whole);
  const compiled = kit.getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  const message = kit.decompileTransactionMessage(compiled, { lastValidBlockHeight: 0n });
  const rebuilt = kit.compileTransaction(message);
  const checks = await Promise.all(Object.entries(transaction.signatures).map(async ([address, signature]) => {
    const key = await kit.getPublicKeyFromAddress(address);
    return signature !== null && kit.verifySignature(key, signature, transaction.messageBytes);
  }));
  return {
    txid: kit.getSignatureFromTransaction(transaction),
    signers: Object.keys(transaction.signatures), checks, version: message.version,
    message: hex(transaction.messageBytes), rebuilt: hex(rebuilt.messageBytes),
    payer: message.feePayer.address, blockhash: message.lifetimeConstraint.blockhash,
    calls: message.instructions.map(({ programAddress, accounts = [], data = [] }) => ({
      program: programAddress, accounts: accounts.map(({ address, role }) => [address, role]), data: hex(data),
    })),
  };
}

// The signatures that somebody else's code gives the same message, by the signers' order.
async function sign({ keys, whole }) {
  const pairs = await Promise.all(keys.map((key) => kit.createKeyPairFromPrivateKeyBytes(raw(key))));
  const { signatures } = await kit.partiallySignTransaction(pairs, opened(whole));
  return Object.values(signatures).map((signature) => hex(signature));
}

const address = async ({ key }) => (await signer(key)).address;

const isAddress = ({ text }) => kit.isAddress(text);

const isOffCurve = ({ text }) => kit.isOffCurveAddress(text);

async function associated({ owner, mint, program = TOKEN }) {
  const seeds = [owner, program, mint].map((text) => kit.getAddressEncoder().encode(text));
  return (await kit.getProgramDerivedAddress({ programAddress: ASSOCIATED, seeds }))[0];
}

async function sent(url, key, instructions) {
  const rpc = kit.createSolanaRpc(url);
  const payer = await signer(key);
  const { value: latest } = await rpc.getLatestBlockhash({ commitment: "confirmed" }).send();
  let message = kit.setTransactionMessageFeePayerSigner(payer, kit.createTransactionMessage({ version: 0 }));
  message = kit.setTransactionMessageLifetimeUsingBlockhash(latest, message);
  message = kit.appendTransactionMessageInstructions(instructions, message);
  const transaction = await kit.signTransactionMessageWithSigners(message);
  return send({ url, whole: hex(kit.getTransactionEncoder().encode(transaction)) });
}

const send = async ({ url, whole }) => {
  const text = kit.getBase64EncodedWireTransaction(opened(whole));
  return kit.createSolanaRpc(url).sendTransaction(text, { encoding: "base64", preflightCommitment: "confirmed" }).send();
};

async function pay({ url, key, to, units }) {
  const { address: from } = await signer(key);
  const data = Buffer.alloc(12);
  data.writeUInt32LE(2);
  data.writeBigUInt64LE(BigInt(units), 4);
  const accounts = [{ address: from, role: SIGNS_AND_WRITES }, { address: to, role: WRITES }];
  return sent(url, key, [{ programAddress: SYSTEM, accounts, data: new Uint8Array(data) }]);
}

async function payToken({ url, key, token, to, units, decimals }) {
  const { address: from } = await signer(key);
  const source = await associated({ owner: from, mint: token });
  const target = await associated({ owner: to, mint: token });
  const data = Buffer.alloc(10);
  data.writeUInt8(12);
  data.writeBigUInt64LE(BigInt(units), 1);
  data.writeUInt8(decimals, 9);
  const read_only = [to, token, SYSTEM, TOKEN].map((one) => ({ address: one, role: READS }));
  return sent(url, key, [
    {
      programAddress: ASSOCIATED, data: new Uint8Array([1]),
      accounts: [{ address: from, role: SIGNS_AND_WRITES }, { address: target, role: WRITES }, ...read_only],
    },
    {
      programAddress: TOKEN, data: new Uint8Array(data),
      accounts: [
        { address: source, role: WRITES }, { address: token, role: READS }, { address: target, role: WRITES },
        { address: from, role: SIGNS },
      ],
    },
  ]);
}

const balance = async ({ url, of }) => (await kit.createSolanaRpc(url).getBalance(of).send()).value;

const held = async ({ url, token, of }) => {
  const place = await associated({ owner: of, mint: token });
  return (await kit.createSolanaRpc(url).getTokenAccountBalance(place).send()).value.amount;
};

const block = async ({ url, slot, details }) => kit.createSolanaRpc(url).getBlock(BigInt(slot), {
  encoding: "json", transactionDetails: details, maxSupportedTransactionVersion: 0, rewards: false,
}).send();

const status = async ({ url, txid }) => (await kit.createSolanaRpc(url).getSignatureStatuses([txid]).send()).value[0];

const fee = async ({ url, whole }) => {
  const message = Buffer.from(opened(whole).messageBytes).toString("base64");
  return (await kit.createSolanaRpc(url).getFeeForMessage(message, { commitment: "confirmed" }).send()).value;
};

const ANSWERS = {
  read, sign, address, isAddress, isOffCurve, associated, send, pay, payToken, balance, held, block, status, fee,
};

for await (const line of createInterface({ input: stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try {
    answer = { result: await ANSWERS[asked.what](asked) };
  } catch (error) {
    answer = { error: `${error?.context?.__code ?? ""} ${error?.stack ?? error}` };
  }
  stdout.write(`${JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? Number(value) : value))}\n`);
}
