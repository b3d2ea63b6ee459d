"""Models whose heads have a known rank, to try the tool on: `python known.py` makes the folders r3, r3n and full."""

import torch
from transformers import BertConfig, BertModel

SIZE = 16  # of a head
CONFIG = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}

for folder, rank, noise in (("r3", 3, 0.0), ("r3n", 3, 1e-3), ("full", SIZE, 0.0)):
    torch.manual_seed(0)
    config = BertConfig(**CONFIG, intermediate_size=64, max_position_embeddings=64, initializer_range=0.3)
    model = BertModel(config)
    with torch.no_grad():
        for layer in model.encoder.layer:
            for linear in (layer.attention.self.query, layer.attention.self.key):
                linear.bias.zero_()
                for head in linear.weight.split(SIZE):
                    form = torch.randn(SIZE, rank) @ torch.randn(rank, 32) * rank**-0.5 / 2
                    head.copy_(form + noise * torch.randn(SIZE, 32))
    model.save_pretrained(folder)
