"""Where the files of tables are: in a folder of this machine, or in a bucket of an object store."""
