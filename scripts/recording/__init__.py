"""Real programs in a real terminal (tmux), on a machine of namespaces that shows nothing of this one."""
