"""Where tables lie: the ports of a warehouse, and each kind of it in a folder of its own."""
