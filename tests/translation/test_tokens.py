"""Vocabulary, sentences as numbers, and the altered order of Table 1."""

from pathlib import Path

import numpy as np
import pytest

from attnrate.core.errors import UserError
from attnrate.sources import corpora
from attnrate.translation import tokens
from attnrate.translation.tokens import EOS, PAD, Sentences


def text(corpus):
    return [side for pair in corpus["train"] for side in pair]


@pytest.fixture
def vocabulary():
    Path("v.model").write_bytes(tokens.learn(text(corpora.toy()), 300))
    return tokens.Vocabulary(Path("v.model"))


def test_the_vocabulary_is_joint_deterministic_and_at_most_as_large_as_asked(vocabulary):
    corpus = corpora.toy()
    assert tokens.learn(text(corpus), 300) == Path("v.model").read_bytes() and len(vocabulary) == 300
    Path("all.model").write_bytes(tokens.learn(text(corpus), 37000))
    assert 300 < len(tokens.Vocabulary(Path("all.model"))) < 37000
    assert str(Path.cwd()).encode() not in Path("v.model").read_bytes()


def test_decoding_gives_the_text_back_up_to_the_end_of_sentence(vocabulary):
    for sentence in text(corpora.toy())[:50]:
        ids = vocabulary.encode([sentence])[0]
        assert not {PAD, EOS} & set(ids.tolist())
        assert vocabulary.decode([*ids, EOS, 7, 8]) == sentence
        assert vocabulary.decode([PAD, 36999, *ids]) == sentence, "what an untrained model may say does no harm"


def test_text_is_not_normalised(vocabulary):
    Path("w.model").write_bytes(tokens.learn(["½ … ﬁn “x”"] * 3 + text(corpora.toy()), 300))
    odd = tokens.Vocabulary(Path("w.model"))
    assert odd.decode(odd.encode(["½ … ﬁn “x”"])[0]) == "½ … ﬁn “x”"


def test_rare_characters_get_no_piece_where_coverage_leaves_them_out():
    corpus = [*text(corpora.toy()), "ba本s1 de字en2"]
    for coverage, unknown in ((1.0, 0), (0.9995, 2)):
        Path("c.model").write_bytes(tokens.learn(corpus, 300, coverage))
        ids = tokens.Vocabulary(Path("c.model")).encode(corpus[-1:])[0]
        assert (ids == tokens.UNK).sum() == unknown


def test_a_vocabulary_smaller_than_the_alphabet_is_an_error():
    with pytest.raises(UserError, match="no vocabulary of 10 pieces"):
        tokens.learn(text(corpora.toy()), 10)


def test_a_file_that_is_no_model_and_one_that_holds_no_tokens(tmp_path):
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(UserError, match=r"x: cannot be read .*--force translation_tokens"):
        tokens.Vocabulary(tmp_path / "x")
    with pytest.raises(UserError, match=r"x: cannot be read .*--force translation_tokens"):
        tokens.load(tmp_path / "x")


def sentences():
    rng = np.random.default_rng(0)
    return [rng.integers(3, 60000, n).tolist() for n in (1, 9, 10, 11, 20, 0, 35)]


def test_sentences_lie_end_to_end_and_survive_the_disk():
    lists = sentences()
    found = Sentences.of(lists)
    assert len(found) == 7 and [found[i].tolist() for i in range(7)] == lists
    assert found.lengths.tolist() == [1, 9, 10, 11, 20, 0, 35]
    keep = np.array([True, False, True, True, False, True, False])
    kept = found.select(keep)
    assert [kept[i].tolist() for i in range(4)] == [lists[i] for i in (0, 2, 3, 5)]
    tokens.save(Path("t.npz"), {"train_en": found, "train_de": kept})
    first = Path("t.npz").read_bytes()
    again = tokens.load(Path("t.npz"))
    tokens.save(Path("t.npz"), again)
    assert list(again) == ["train_en", "train_de"] and Path("t.npz").read_bytes() == first
    assert again["train_en"].ids.dtype == np.uint16 and np.array_equal(again["train_de"].starts, kept.starts)


def test_permutation_moves_the_first_ten_tokens_to_the_end_and_leaves_short_sentences():
    lists = sentences()
    found = tokens.permute(Sentences.of(lists))
    for i, sentence in enumerate(lists):
        expected = sentence[10:] + sentence[:10] if len(sentence) > 10 else sentence
        assert found[i].tolist() == expected
    assert sum(found[i].tolist() == lists[i] for i in range(7)) == 4  # of 0, 1, 9 and 10 tokens
