"""Ways into other libraries, one module each; nothing is imported here, each module asks for its own library."""
