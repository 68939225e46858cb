"""Classic multi-agent algorithms side by side, on the token game and on two environments that are well known."""
