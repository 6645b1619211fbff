"""The commands, one a file: arguments in, a call to the room that works, words out."""
