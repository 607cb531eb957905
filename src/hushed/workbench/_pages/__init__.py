"""The pages: each module makes a router of thin handlers."""
