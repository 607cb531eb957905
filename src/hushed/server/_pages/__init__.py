"""The pages of a server: each does what the API does, by the same functions and permissions."""
