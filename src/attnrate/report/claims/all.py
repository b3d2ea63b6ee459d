"""What judges each claim."""

from attnrate.report.claims import beyond, decay, examples, linear, propositions, rates, translation, vit

GROUPS = (rates, decay, propositions, linear, translation, vit, examples, beyond)
EVALUATORS = {name: evaluate for group in GROUPS for name, evaluate in group.EVALUATORS.items()}
