"""The one exception whose message is for the user."""


class UserError(Exception):
    """Something the user can put right; the message says what, where and how."""
