"""A language model of characters, trained for a quarter of a minute, to try the tool on: python tiny.py TEXT FOLDER"""

import sys
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

STEPS, LENGTH, BATCH = 300, 64, 32


def main(text: Path, folder: Path) -> None:
    letters = text.read_text(encoding="utf-8")
    known = {c: i for i, c in enumerate(["[UNK]", *sorted(set(letters))])}
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(known), n_positions=256, n_embd=64, n_layer=3, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    ids = torch.tensor([known[c] for c in letters])
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, STEPS)
    for _ in range(STEPS):
        starts = torch.randint(len(ids) - LENGTH, (BATCH,))
        rows = torch.stack([ids[i : i + LENGTH] for i in starts])
        loss = model(rows, labels=rows).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    print(f"loss {loss.item():.2f}")
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
