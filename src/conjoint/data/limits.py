"""How much a file may ask for. A small file that swells to more than this is refused before it is read."""

# Enough for 100 million edges; far below what would bring a workstation down.
MAX_BYTES = 4 * 2**30
# Honest tables shrink by 2 to 20 times, one-hot matrices by up to 200; a bomb by 1000.
MAX_RATIO = 500
# Below this, a high ratio harms nobody (a file of zeros is a legitimate file).
ALWAYS_FINE = 64 * 2**20
