"""Context-tree weighting: compressing a sequence.

A binary source remembers as much of its past as it needs: after a 1 it forgets everything, after 00 it looks further
back. Context-tree weighting averages over every such memory up to some length. It is a meta-tree whose levels are lags:
the root asks for the last symbol, the next level for the one before. The log evidence of the sequence is its ideal code
length, here beside that of a coder who knows the source.
"""

import matplotlib.pyplot as plt
import numpy as np

import everytree as et

DEPTH, LENGTH = 6, 4000
ONE_AFTER = {"1": 0.2, "10": 0.7, "100": 0.9, "000": 0.05}  # memory of the source, the latest symbol last

rng = np.random.default_rng(0)
text = "0" * DEPTH
chances = []
while len(text) < LENGTH + DEPTH:
    chances.append(next(p for past, p in ONE_AFTER.items() if text.endswith(past)))
    text += str(int(rng.random() < chances[-1]))
symbols = np.array(list(text), dtype=np.uint8)
chance = np.array(chances)

lags = np.lib.stride_tricks.sliding_window_view(symbols[:-1], DEPTH)[:, ::-1]  # column k: the symbol k + 1 steps ago
now = symbols[DEPTH:]
levels = np.repeat(np.arange(DEPTH), 2 ** np.arange(DEPTH))
post = et.Posterior(et.MetaTree.complete(levels, n_children=2), et.Bernoulli(0.5, 0.5), split_prior=0.5)

lengths = []
for begin in range(0, LENGTH, 100):
    post.update(lags[begin : begin + 100], now[begin : begin + 100])
    lengths.append(-post.log_evidence / np.log(2) / post.n_rows)
known = -np.log2(np.where(now == 1, chance, 1.0 - chance))
known_lengths = (np.cumsum(known) / np.arange(1, LENGTH + 1))[99::100]
entropy = -np.mean(chance * np.log2(chance) + (1 - chance) * np.log2(1 - chance))
print(f"{lengths[-1]:.4f} bits a symbol; with the source known {known_lengths[-1]:.4f} (its entropy is {entropy:.4f})")
names = [f"{k} ago" for k in range(1, DEPTH + 1)]
print("the most probable memory, with probability", np.exp(post.tree_log_prob(post.map_tree())).round(3))
print(post.map_tree().to_text(post, feature_names=names))

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(np.arange(100, LENGTH + 1, 100), lengths, label="code length, averaged over all memories")
axes.plot(np.arange(100, LENGTH + 1, 100), known_lengths, "--", label="code length, the source known")
axes.set(xlabel="symbols", ylabel="bits a symbol", title="The price of not knowing the memory vanishes")
axes.legend()
