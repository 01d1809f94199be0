"""What stands behind the entry stubs of a function: its compiled code, how it is made, the states of signatures."""
