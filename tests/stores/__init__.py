"""Lakes in real object stores, and what comes between a store and its clients."""
