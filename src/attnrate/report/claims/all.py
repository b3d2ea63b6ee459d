"""What judges each claim."""

from attnrate.report.claims import beyond, examples, linear, propositions, rates, translation, vit

GROUPS = (rates, propositions, linear, translation, vit, examples, beyond)
EVALUATORS = {name: evaluate for group in GROUPS for name, evaluate in group.EVALUATORS.items()}
