"""Where a league's work is done: in this process (`local`), or by actors on many machines (`ray`)."""
