"""What people ask of tables between runs: status, SQL, checks, maintenance, rebuilding."""
