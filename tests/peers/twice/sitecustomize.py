"""Hands every third message of a worker out twice, at once, as a queue that promises nothing may. Put on PYTHONPATH.

Python imports it at the start of every process; it acts where actors.queue.consumer is imported.
"""

import importlib.util
import itertools
import sys

EVERY = 3


class _Finder:
    def find_spec(self, name, path=None, target=None):  # noqa: ANN001, ANN202 - the import system's own protocol
        del path, target
        if name != "actors.queue.consumer":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):  # noqa: ANN001, ANN202
            load(module)
            _give_twice(module.BlockingConsumer, module.MessageProxy)

        spec.loader.exec_module = exec_module
        return spec


def _give_twice(consumer, proxy) -> None:  # noqa: ANN001
    take, numbers = consumer.__next__, itertools.count(1)

    def give(self):  # noqa: ANN001, ANN202
        popped = self.__dict__.pop("given_before", None)
        if popped is not None:
            return proxy(popped)
        message = take(self)
        if message is not None and next(numbers) % EVERY == 0:
            self.given_before = message._message
        return message

    consumer.__next__ = give


sys.meta_path.insert(0, _Finder())
