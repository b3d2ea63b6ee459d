"""Tables, figures and claims."""
