"""Joint BPE of both languages (sentencepiece), sentences as numbers, and the altered order of section 6.1."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sentencepiece as spm

from attnrate.core import files
from attnrate.core.errors import UserError

PAD, UNK, EOS = 0, 1, 2  # a translation starts from PAD, as Marian's do
MOVED = 10  # tokens that go from the beginning of a source sentence to its end


def learn(sentences: Iterable[str], size: int, coverage: float = 1.0) -> bytes:
    """A BPE model with at most `size` pieces: fewer if the text has no more to give. One thread: the same bytes.

    Characters beyond the share `coverage` of the text, the rarest, get no piece: they are unknown.
    """
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=coverage,
            normalization_rule_name="identity",
            pad_id=PAD,
            unk_id=UNK,
            eos_id=EOS,
            bos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as e:
        raise UserError(f"no vocabulary of {size} pieces can be learned from this corpus: {e}") from None
    return model.getvalue()


@dataclass(frozen=True)
class Sentences:
    """Sentences of tokens, end to end: sentence i is ids[starts[i] : starts[i + 1]]."""

    ids: np.ndarray  # (total,) uint16
    starts: np.ndarray  # (N + 1,) int64

    @classmethod
    def of(cls, sentences: Iterable[Sequence[int]]) -> "Sentences":
        arrays = [np.array(s, np.uint16) for s in sentences]
        starts = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        return cls(np.concatenate([np.zeros(0, np.uint16), *arrays]), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        return self.ids[self.starts[i] : self.starts[i + 1]]

    @property
    def lengths(self) -> np.ndarray:  # (N,)
        return np.diff(self.starts)

    def select(self, keep: np.ndarray) -> "Sentences":
        """The sentences where keep (N,) is true."""
        starts = np.concatenate([[0], self.lengths[keep].cumsum()])
        return Sentences(self.ids[np.repeat(keep, self.lengths)], starts)


class Vocabulary:
    def __init__(self, path: Path):
        with files.reading(path, "`dvc repro --force translation_tokens` makes it") as f:
            self.pieces = spm.SentencePieceProcessor(model_proto=f.read() or b"\0")  # it takes no bytes for no model

    def __len__(self) -> int:
        return self.pieces.get_piece_size()

    def encode(self, sentences: list[str]) -> Sentences:
        return Sentences.of(self.pieces.encode(s) for s in sentences)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of tokens up to EOS, without numbers beyond the vocabulary, which an untrained model may produce."""
        known = []
        for i in map(int, ids):
            if i == EOS:
                break
            if i < len(self) and i != PAD:
                known.append(i)
        return self.pieces.decode(known)


def permute(sentences: Sentences, moved: int = MOVED) -> Sentences:
    """The first `moved` tokens at the end; sentences of at most as many tokens stay as they are."""
    position = np.arange(len(sentences.ids)) - np.repeat(sentences.starts[:-1], sentences.lengths)
    length = np.repeat(sentences.lengths, sentences.lengths)
    source = np.where(length > moved, (position + moved) % np.maximum(length, 1), position)
    return Sentences(sentences.ids[source + np.repeat(sentences.starts[:-1], sentences.lengths)], sentences.starts)


def save(path: Path, parts: dict[str, Sentences]) -> None:
    """name → sentences, such as train_en."""
    files.write_npz(path, {f"{name}.{k}": getattr(s, k) for name, s in parts.items() for k in ("ids", "starts")})


def load(path: Path) -> dict[str, Sentences]:
    remedy = "`dvc repro --force translation_tokens` makes it"
    z = files.read_npz(path, remedy)
    with files.reading(path, remedy):
        found = {n: Sentences(z[f"{n}.ids"], z[f"{n}.starts"]) for n in dict.fromkeys(k.partition(".")[0] for k in z)}
        for name, s in found.items():
            whole = s.ids.dtype == np.uint16 and s.starts.dtype == np.int64 and len(s.starts) and s.starts[0] == 0
            if not (whole and s.starts[-1] == len(s.ids) and (s.lengths >= 0).all()):
                raise ValueError(f"{name}: no sentences of tokens")
    return found
