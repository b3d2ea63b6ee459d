"""Sections 5.2 and 6.1 on CIFAR10: the ViT with a free head size, and its training."""
