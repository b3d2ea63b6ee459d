"""Stacks of small models: the Transformer of eq. (5), the linear RNN, their one training loop."""
