"""What pages show, as plain records: from a draft and the library, without the web."""
