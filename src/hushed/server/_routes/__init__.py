"""The addresses of the server, by who may use them."""
