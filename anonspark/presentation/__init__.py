"""A page of HTML: its blocks, its charts and the file that holds them."""
