"""A trial deployment on one machine, and the engines that it can use."""
