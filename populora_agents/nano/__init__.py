"""nano: a base model of our own on which the whole method runs on a laptop."""
