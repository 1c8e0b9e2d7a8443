#!/usr/bin/env python3
"""Prints what cuda.sh measured as Markdown.

usage: cuda_report.py OURS PEERS [REVISION]

OURS is of `atlasrt ops bench --json` on a GPU, PEERS of cuda_peers.py.
"""

import json
import sys

SLOWER = 1.1  # times as long as a peer: such rows are listed
FAIRER = {  # tables of peers that do more of what our kernels do
    "round activations as well": ("f8 in",),
    "round activations as well, and do not use fast sums": ("f8 in", "fast sums"),
}
HEADER = "| op | case | µs | peer | its µs | peer/ours |\n|---|---|--:|---|--:|--:|\n"


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def microseconds(value):
    return "" if not value else f"{value:.2f}" if value < 100 else f"{value:.1f}"


def pair(ours, theirs):
    """Both cold or, where that is not known of both, both warm; zeros where neither is."""
    for i in (0, 1):
        if ours[i] and theirs[i]:
            return ours[i], theirs[i]
    return 0, 0


def best_peers(rows, without=()):
    """The fastest by (op, case): (name, (cold, warm)), of those whose name has none of these."""
    best = {}
    for row in rows:
        if any(what in row["name"] for what in without):
            continue
        key, times = (row["op"], row["case"]), (row["cold_us"], row["warm_us"])
        before = best.get(key)
        if before is None or pair(times, before[1])[0] < pair(times, before[1])[1]:
            best[key] = row["name"], times
    return best


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    ours, peers = read(sys.argv[1]), read(sys.argv[2])
    best = best_peers(peers["rows"])
    fairer = [(what, best_peers(peers["rows"], without), []) for what, without in FAIRER.items()]
    lines, slower = [], []
    for r in ours["Results"]:
        if r["Message"]:
            lines.append(f"| {r['Op']} | {r['Case']} | {r['Message']} | | | | | | | | |")
            continue
        times = tuple(r[kind]["Median"] / 1e3 for kind in ("Cold", "Warm"))
        name, theirs = best.get((r["Op"], r["Case"]), ("", (0, 0)))
        mine, other = pair(times, theirs)
        seconds = (times[0] or times[1]) / 1e6
        share = 100 * r["Bytes"] / seconds / ours["Ceiling"]
        ratio = f"{other / mine:.2f}" if mine else ""
        lines.append(
            f"| {r['Op']} | {r['Case']} | {microseconds(times[0])} | {microseconds(times[1])} | {r['Bytes'] / seconds / 1e9:.0f}"
            f" | {share:.0f} | {r['Flops'] / seconds / 1e12:.1f} | {name} | {microseconds(theirs[0])} | {microseconds(theirs[1])} | {ratio} |")
        key = r["Op"], r["Case"]
        for _, peer, rows in fairer:
            if key in peer and peer[key] != best[key]:
                mine_too, fair = pair(times, peer[key][1])
                rows.append(f"| {r['Op']} | {r['Case']} | {microseconds(mine_too)} | {peer[key][0]} | {microseconds(fair)} | {fair / mine_too:.2f} |")
        if mine > SLOWER * other:
            slower.append(f"| {r['Op']} | {r['Case']} | {microseconds(mine)} | {name} | {microseconds(other)} | {other / mine:.2f} |")
    about = peers["about"]
    print(f"# Kernels of {ours['Target']} beside PyTorch's\n")
    print(f"* date: {about['date']}; GPU: {about['gpu']}; atlasrt: {sys.argv[3] if len(sys.argv) == 4 else 'unknown'}")
    print(f"* peers: PyTorch {about['torch']}, CUDA {about['cuda']}, cuDNN {about['cudnn']}; the fastest of those that can do a case")
    print("* command: `tools/peers/cuda.sh`: launches replayed from CUDA graphs; medians; cold: over copies of all buffers that no cache"
          " holds; warm: over the same buffers")
    print(f"* memory gives up to {ours['Ceiling'] / 1e9:.0f} GB/s ({ours['Method']}); rates are of the cold time where there is one\n")
    print("| op | case | µs cold | µs warm | GB/s | % of memory | TFLOP/s | peer | its µs cold | warm | peer/ours |")
    print("|---|---|--:|--:|--:|--:|--:|---|--:|--:|--:|")
    print("\n".join(lines))
    print(f"\n## More than {SLOWER - 1:.0%} slower than a peer\n")
    if slower:
        print(HEADER + "\n".join(slower))
    else:
        print("None.")
    for what, _, rows in fairer:
        if rows:
            print(f"\n## Beside peers that {what}\n\n" + HEADER + "\n".join(rows))


if __name__ == "__main__":
    main()
