"""Heads cut to m_h: the best replacement of rank m_h of each head's bilinear form, and what it does to a model."""
