"""Section 6, Tables 2 and 3: linear targets, their exact floors, trainings on them."""
