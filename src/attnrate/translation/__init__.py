"""Section 6.1 on English-German: tokens, the Transformer, training, decoding, BLEU."""
