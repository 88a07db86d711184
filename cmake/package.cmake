# Installation: to come.
