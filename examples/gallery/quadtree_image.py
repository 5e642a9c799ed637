"""Image denoising by a quadtree, all its block sizes averaged.

Cut a square image into four, each quarter into four again: a meta-tree whose levels ask for one bit of the row and one
of the column of a pixel. Its posterior says where large blocks suffice and where small ones are needed, and the mean
over all prunings is the image without its noise, better than any one size of blocks.
"""

import matplotlib.pyplot as plt
import numpy as np

import everytree as et

SIZE, DEPTH = 64, 6
rng = np.random.default_rng(0)
row, column = np.mgrid[:SIZE, :SIZE]
image = 0.3 * (row + column > SIZE) + 0.7 * ((row - 22) ** 2 + (column - 24) ** 2 < 160)
noisy = image + 0.25 * rng.normal(size=image.shape)

bits = [2 * ((row >> k) & 1) + ((column >> k) & 1) for k in reversed(range(DEPTH))]
codes = np.stack([bit.ravel() for bit in bits], axis=1).astype(np.uint8)  # one code of four a level
levels = np.repeat(np.arange(DEPTH), 4 ** np.arange(DEPTH))
tree = et.MetaTree.complete(levels, n_children=4)
post = et.Posterior(tree, et.Normal(mean=0.4, strength=0.1, shape=20.0, scale=1.25), split_prior=0.5)
post.update(codes, noisy.ravel())

mean = post.predictive(codes).mean().reshape(image.shape)
best = post.map_tree()
print(f"{tree.n_nodes} nodes; the most probable pruning has {best.n_leaves} blocks for {SIZE * SIZE} pixels")


def error(guess: np.ndarray) -> float:
    return float(np.sqrt(np.mean((guess - image) ** 2)))


print(f"error: noisy {error(noisy):.3f}, mean over all prunings {error(mean):.3f}")
for side in (2, 4, 8):
    blocks = noisy.reshape(SIZE // side, side, SIZE // side, side).mean(axis=(1, 3))
    print(f"blocks of {side} x {side} alone: {error(np.kron(blocks, np.ones((side, side)))):.3f}")

depth = tree.depth[best.leaves][best.apply(codes)].reshape(image.shape)
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
shown = {"noisy": noisy, "mean over all prunings": mean, "depth of blocks": depth}
for place, (title, picture) in zip(axes, shown.items(), strict=True):
    place.imshow(picture, cmap="viridis" if picture is depth else "gray")
    place.set(title=title, xticks=[], yticks=[])
