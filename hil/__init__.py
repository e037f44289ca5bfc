"""Hardware-in-the-loop tests for network drivers on labgrid boards."""
