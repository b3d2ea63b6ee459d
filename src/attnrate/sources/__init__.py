"""Where images and sentences come from."""
