"""Names the errors of Solana's nodes: codes of their interface, and words for a transaction's own. Used by answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from devstack.solana.blocks import Block

PREFLIGHT_FAILED: Final = -32002
BAD_SIGNATURE: Final = -32003
NOT_AVAILABLE: Final = -32004
SKIPPED: Final = -32007
NOT_STORED: Final = -32009
CLEANED_UP: Final = -32001
NO_VERSION: Final = -32015
TOO_EARLY: Final = -32016
NO_METHOD: Final = -32601
BAD_PARAMS: Final = -32602

_WORDS: Final[Mapping[str, str]] = {
    "AccountNotFound": "Attempt to debit an account but found no record of a prior credit.",
    "AddressLookupTableNotFound": "Transaction loads an address table account that doesn't exist",
    "AlreadyProcessed": "This transaction has already been processed",
    "BlockhashNotFound": "Blockhash not found",
    "InsufficientFundsForFee": "Insufficient funds for fee",
    "ProgramAccountNotFound": "Attempt to load a program that does not exist",
    "SignatureFailure": "Transaction did not pass signature verification",
}


class Fault(Exception):  # noqa: N818  an answer in JSON-RPC, not a failure of the simulator
    """A node's refusal of a question."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def bad_params(problem: str) -> Fault:
    """Return the refusal of a question that makes no sense."""
    return Fault(BAD_PARAMS, f"Invalid param: {problem}")


def not_available(slot: int) -> Fault:
    """Return the answer for a slot that has not come to this commitment."""
    return Fault(NOT_AVAILABLE, f"Block not available for slot {slot}")


def skipped(slot: int) -> Fault:
    """Return the answer for a slot without a block, which a slot that was lost gets as well."""
    return Fault(SKIPPED, f"Slot {slot} was skipped, or missing due to ledger jump to recent snapshot")


def pruned(slot: int, first: int, code: int) -> Fault:
    """Return the answer for a slot before those that a node keeps; nodes and their stores differ in it."""
    messages = {
        CLEANED_UP: f"Block {slot} cleaned up, does not exist on node. First available block: {first}",
        NOT_AVAILABLE: f"Block not available for slot {slot}",
        SKIPPED: f"Slot {slot} was skipped, or missing due to ledger jump to recent snapshot",
        NOT_STORED: f"Slot {slot} was skipped, or missing in long-term storage",
    }
    return Fault(code, messages[code])


def no_version(version: int | str) -> Fault:
    """Return the refusal of a whole block, or transaction, for a version that the question did not allow."""
    return Fault(
        NO_VERSION,
        f"Transaction version ({version}) is not supported by the requesting client. Please try the request again "
        f'with the following configuration parameter: "maxSupportedTransactionVersion": {version}',
    )


def too_early(block: Block) -> Fault:
    """Return the refusal of a question about a slot that this node has not reached."""
    return Fault(TOO_EARLY, "Minimum context slot has not been reached", {"contextSlot": block.slot})


def words(err: Any) -> str:
    """Return a transaction's error as nodes word it."""
    if isinstance(err, str):
        return _WORDS.get(err, err)
    ((kind, value),) = err.items()
    if kind == "InstructionError":
        return f"Error processing Instruction {value[0]}: {_instruction_words(value[1])}"
    if kind == "InsufficientFundsForRent":
        return f"Transaction results in an account ({value['account_index']}) with insufficient funds for rent"
    return str(kind)


def _instruction_words(err: Any) -> str:
    if isinstance(err, dict) and "Custom" in err:
        return f"custom program error: {err['Custom']:#x}"
    return str(err)
